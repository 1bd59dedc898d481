# State gradients at contacts: points and ellipses (two standard deviations), branches against
# bundles; beside them, if there is a file, their spread over the length of the rollout.
# data: kind (point, ellipse), series, x, y; labels: names of the series, quoted; xname, yname: the
# root's coordinates; xview, yview: ranges; spread: CSV (length, variant, ...) or ""; subtitle

width = spread eq "" ? 560 : 1100
height = 480
load home."/plots/style.gp"

n = words(labels)
colour(i) = word(labels, i + 1) eq "branch" ? "#e69f00" : \
            word(labels, i + 1) eq "bundle" ? "#0072b2" : "#7a7a7a"
kind(k, i, c) = strcol("kind") eq k && column("series") == i ? column(c) : NaN
set multiplot layout 1,(spread eq "" ? 1 : 2) margins (spread eq "" ? 0.14 : 0.075),0.985,0.23,0.88 \
  spacing 0.09,0 title "Gradients of a later vertical speed".(subtitle eq "" ? "" : ": ".subtitle) font face.",13"

set xlabel "d v_z / d ".xname
set ylabel "d v_z / d ".yname offset 0.5
eval "set xrange ".xview
eval "set yrange ".yview
set key at graph 0.5, screen 0.065 center bottom horizontal width 2
set label 1 "Ellipses: two standard deviations. Branches: perturbed as in a bundle; bundle: their mean; plain: unperturbed." \
  at screen 0.5, screen 0.022 center font face.",8"
plot for [i=0:n-1] data using (kind("point", i, "x")):(kind("point", i, "y")) \
       with points pointtype 7 pointsize 0.35 linecolor rgb colour(i) title word(labels, i + 1), \
     for [i=0:n-1] data using (kind("ellipse", i, "x")):(kind("ellipse", i, "y")) \
       with lines linewidth 2.4 linecolor rgb colour(i) notitle

if (spread ne "") {
  unset label 1
  set datafile missing NaN # lines go on over the rows of other variants
  set xrange [0.95:34]
  set yrange [*:*]
  set logscale xy
  set xlabel "control steps from contact to speed"
  set ylabel "deviation of gradients (sqrt of covariance's trace)" offset 0.5
  set xtics (1, 2, 4, 8, 16, 32)
  row(i, c) = strcol("variant") eq word(labels, i + 1) ? column(c) : NaN
  plot for [i=0:n-1] spread using (row(i, "length")):(row(i, "spread")) \
         with linespoints pointtype 7 pointsize 0.6 linecolor rgb colour(i) title word(labels, i + 1)
}
unset multiplot
