# Settings of a bundle, one at a time: a row per variant, a panel per metric; means and bootstrap
# intervals over seeds.
# data: row, variant, seeds, then NAME, NAME_lo, NAME_hi per metric; labels: names of the rows, quoted;
# nrow; shown: metrics; subtitle

n = int(nrow)
k = words(shown)
width = 260 + 230 * k
height = 150 + 26 * n
load home."/plots/style.gp"

name(c) = c eq "e_track_cm"      ? "E_track, MuJoCo (cm)" :\
          c eq "fall_share"      ? "share that fell" :\
          c eq "falls"           ? "episodes that fell" :\
          c eq "eval_e_track_cm" ? "E_track, training (cm)" :\
          c eq "reward"          ? "reward per step" :\
          c eq "bundle_fraction" ? "share of steps in bundles" : "training (s)"
left = 190.0 / width
set multiplot layout 1,k margins left,0.985,(88.0 / height),(1 - 46.0 / height) spacing 0.03,0 \
  title "Bundles".(subtitle eq "" ? "" : ": ".subtitle) font face.",13"
unset key
set yrange [n-0.5:-0.5]
set ytics scale 0
set offsets 0, 0, 0, 0
do for [p=1:k] {
  c = word(shown, p)
  set xlabel name(c)
  set format y ""
  if (p == 1) {
    set format y "%s"
    set ytics (word(labels, 1) 0)
    do for [i=2:n] { set ytics add (word(labels, i) i - 1) }
  } else {
    set ytics ("" 0)
    do for [i=2:n] { set ytics add ("" i - 1) }
  }
  set xtics autofreq rotate by -40
  if (c eq "falls" || c eq "fall_share") { set xrange [-0.05:1<*] } else { set xrange [*:*] }
  if (p == 1) {
    set label 1 "Points: mean over seeds. Intervals: bootstrap 95 %." at screen 0.5, screen (14.0 / height) center font face.",8"
  } else { unset label 1 }
  plot data using (column(c)):"row":(column(c."_lo")):(column(c."_hi")) with xerrorbars linetype 1 pointtype 7
}
unset multiplot
