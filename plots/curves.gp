# Learning curves: a row per quantity, against samples (left) and wall-clock time (right). Lines are
# means over seeds, bands reach from the lowest to the highest seed.
# data: series,...,env_steps,wall_s, then NAME,NAME_lo,NAME_hi per quantity
# labels: names of the series, quoted; nseries; shown: quantities that have data; subtitle

nshown = words(shown)
rows_of_key = (int(nseries) + 4) / 5
width = 1100
height = 110 + 22 * rows_of_key + 210 * nshown
load home."/plots/style.gp"

axis_name(c) = c eq "reward"     ? "reward per step" :\
               c eq "episode_s"  ? "episode (s), random start" :\
               c eq "survival"   ? "evaluation: share survived" :\
               c eq "e_track_cm" ? "E_track, body error (cm)" :\
               c eq "failures"   ? "failures per 1000 steps" : c

top = 1 - 46.0 / height
bottom = (76.0 + 22 * rows_of_key) / height
set multiplot layout nshown,2 columnsfirst downwards margins 0.075,0.985,bottom,top spacing 0.075,(44.0 / height) \
  title "Learning curves".(subtitle eq "" ? "" : ": ".subtitle) font face.",13"
n = int(nseries)
set xrange [0:*]
set autoscale xfix
do for [x=1:2] {
  xname = x == 1 ? "env_steps" : "wall_s"
  xunit = x == 1 ? 1e-6 : 1.0 / 60
  do for [r=1:nshown] {
    c = word(shown, r)
    unset xlabel
    if (r == nshown) { set xlabel (x == 1 ? "environment steps (millions)" : "wall-clock time (min)") }
    unset ylabel
    if (x == 1) { set ylabel axis_name(c) offset 0.5 }
    if (c eq "reward") { set yrange [*:*] } else { set yrange [0:*] }
    if (c eq "survival") { set yrange [0:1.05] }
    unset key
    if (x == 2 && r == nshown) { 
      set key at screen 0.5, screen (28.0 / height) center bottom horizontal maxcols 5 width 2
      set label 1 "Lines: mean over seeds. Bands: lowest to highest seed." at screen 0.5, screen (14.0 / height) center font face.",8"
    }
    plot for [i=0:n-1] data using (pick(i,"series") == i ? column(xname) * xunit : NaN):(pick(i, c."_lo")):(pick(i, c."_hi")) \
           with filledcurves fillstyle transparent solid 0.18 noborder linetype i + 1 notitle, \
         for [i=0:n-1] data using (pick(i, xname) * xunit):(pick(i, c)) with lines linetype i + 1 title word(labels, i + 1)
  }
}
unset multiplot
