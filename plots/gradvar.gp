# How much environments disagree about the policy's gradient, along training: variance, spread of
# directions, and the variance relative to the plain gradient's. One line per variant.
# data: series,...,env_steps, then NAME,NAME_lo,NAME_hi; labels: names of the series, quoted;
# nseries; band: what the bands are; subtitle

width = 1100
height = 430
load home."/plots/style.gp"

n = int(nseries)
unit = 1e-6
set multiplot layout 1,3 margins 0.065,0.99,0.25,0.86 spacing 0.075,0 \
  title "Policy gradient over environments".(subtitle eq "" ? "" : ": ".subtitle) font face.",13"
set xlabel "environment steps (millions)"
set xrange [0:*]
set autoscale xfix
name(c) = c eq "variance"         ? "variance V of normalised loss gradients" :\
          c eq "direction_spread" ? "direction spread D (0: all agree)" : "V relative to plain"
unset key
do for [q=1:3] {
  c = word("variance direction_spread ratio", q)
  set ylabel name(c) offset 0.5
  unset logscale
  set yrange [*:*]
  if (c eq "variance") { set logscale y }
  if (c eq "direction_spread") { set yrange [0:1.05] }
  if (q == 3) {
    set key at screen 0.5, screen 0.065 center bottom horizontal maxcols 6 width 2
    set label 1 band at screen 0.5, screen 0.035 center font face.",8"
  }
  plot for [i=0:n-1] data using (pick(i, "env_steps") * unit):(pick(i, c."_lo")):(pick(i, c."_hi")) \
         with filledcurves fillstyle transparent solid 0.18 noborder linetype i + 1 notitle, \
       for [i=0:n-1] data using (pick(i, "env_steps") * unit):(pick(i, c)) \
         with linespoints linetype i + 1 pointsize 0.6 title word(labels, i + 1)
}
unset multiplot
