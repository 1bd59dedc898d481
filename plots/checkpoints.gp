# A policy along training in MuJoCo: tracking error and share of falls of every checkpoint.
# data: series, ..., env_steps, fell_percent, e_track_cm, e_track_cm_lo, e_track_cm_hi; labels: names
# of the series, quoted; nseries; subtitle

n = int(nseries)
rows_of_key = (n + 3) / 4
width = 980
height = 400 + 20 * rows_of_key
load home."/plots/style.gp"

foot = (70.0 + 20 * rows_of_key) / height
set multiplot layout 1,2 margins 0.07,0.97,foot,(1 - 46.0 / height) spacing 0.08,0 \
  title "Checkpoints in MuJoCo".(subtitle eq "" ? "" : ": ".subtitle) font face.",13"
set xlabel "environment steps (millions)"
set xrange [0:*]
unset key
set ylabel "E_track (cm)" offset 0.5
set logscale y
plot for [i=0:n-1] data using (pick(i, "env_steps") * 1e-6):(pick(i, "e_track_cm_lo")):(pick(i, "e_track_cm_hi")) \
       with filledcurves fillstyle transparent solid 0.15 noborder linetype i + 1 notitle, \
     for [i=0:n-1] data using (pick(i, "env_steps") * 1e-6):(pick(i, "e_track_cm")) with linespoints linetype i + 1 pointtype 7 pointsize 0.5
unset logscale y
set ylabel "fell (% of episodes)" offset 0.5
set yrange [-3:103]
set key at screen 0.5, screen (30.0 / height) center bottom horizontal maxcols 4 width 2
set label 1 "Bands: one standard deviation over episodes." at screen 0.5, screen (14.0 / height) center font face.",8"
plot for [i=0:n-1] data using (pick(i, "env_steps") * 1e-6):(pick(i, "fell_percent")) with linespoints linetype i + 1 pointtype 7 pointsize 0.5 title word(labels, i + 1)
unset multiplot
