# Methods against each other: a row per quantity, against samples (left) and wall-clock time (right),
# both logarithmic, for methods differ by tens. Lines are means over seeds, bands bootstrap intervals.
# data: series, ..., env_steps, wall_s, then NAME, NAME_lo, NAME_hi per quantity; labels: names of the
# series, quoted; nseries; shown: quantities that have data; subtitle

nshown = words(shown)
width = 1100
height = 124 + 230 * nshown
load home."/plots/style.gp"

axis_name(c) = c eq "reward"          ? "reward per step" :\
               c eq "eval_e_track_cm" ? "evaluation: E_track (cm)" : "evaluation: share survived"
stats data using (column("env_steps")) name "steps" nooutput
stats data using (column("wall_s")) name "wall" nooutput
set multiplot layout nshown,2 columnsfirst downwards \
  margins 0.075,0.985,(108.0 / height),(1 - 46.0 / height) spacing 0.075,(44.0 / height) \
  title "Methods".(subtitle eq "" ? "" : ": ".subtitle) font face.",13"
n = int(nseries)
set logscale x
# evaluations are rare: lines go on over rows without one
gap(i, c) = column("series") == i ? column(c) : NaN
set datafile missing NaN
do for [x=1:2] {
  xname = x == 1 ? "env_steps" : "wall_s"
  xunit = x == 1 ? 1e-6 : 1.0 / 60
  if (x == 1) { set xrange [steps_min * xunit:steps_max * xunit] } else { set xrange [wall_min * xunit:wall_max * xunit] }
  do for [r=1:nshown] {
    c = word(shown, r)
    unset xlabel
    if (r == nshown) { set xlabel (x == 1 ? "environment steps, branches counted (millions)" : "wall-clock time (min)") }
    unset ylabel
    if (x == 1) { set ylabel axis_name(c) offset 0.5 }
    unset logscale y
    set yrange [*:*]
    if (c eq "eval_survival") { set yrange [0:1.05] }
    if (c eq "eval_e_track_cm") { set logscale y }
    unset key
    if (x == 2 && r == nshown) {
      set key at screen 0.5, screen (30.0 / height) center bottom horizontal maxcols 6 width 2
      set label 1 "Lines: mean over seeds. Bands: bootstrap 95 % interval." at screen 0.5, screen (14.0 / height) center font face.",8"
    }
    plot for [i=0:n-1] data using (gap(i, xname) * xunit):(gap(i, c."_lo")):(gap(i, c."_hi")) \
           with filledcurves fillstyle transparent solid 0.18 noborder linetype i + 1 notitle, \
         for [i=0:n-1] data using (gap(i, xname) * xunit):(gap(i, c)) with lines linetype i + 1 title word(labels, i + 1)
  }
}
unset multiplot
