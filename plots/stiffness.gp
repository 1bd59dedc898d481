# The stiffness table as a picture: share of episodes in MuJoCo that fell, and how much deeper feet
# stand in the training simulator, over the stiffness kappa of its contacts. A colour per motion.
# data: series, kappa, then falls, delta_d with _lo, _hi, paper_falls, paper_delta_d; labels: names of
# the series, quoted; nseries; paper: "1" when there are paper's numbers; xview, ticks: of kappa; subtitle

width = 980
height = 440
load home."/plots/style.gp"

n = int(nseries)
set multiplot layout 1,2 margins 0.075,0.985,0.25,0.88 spacing 0.085,0 \
  title "Stiffness of the training contacts".(subtitle eq "" ? "" : ": ".subtitle) font face.",13"
set xlabel "kappa (1/m)"
set logscale x
eval "set xrange ".xview
eval "set xtics (".ticks.")"
unset key
do for [q=1:2] {
  c = word("falls delta_d", q)
  scale = q == 1 ? 100 : 1
  set ylabel (q == 1 ? "fell in MuJoCo (% of episodes)" : "foot depth, training minus MuJoCo (mm)") offset 0.5
  if (q == 1) { set yrange [-3:103] } else { set yrange [*:*] }
  if (q == 2) {
    set key at screen 0.5, screen 0.075 center bottom horizontal maxcols 8 width 2
    set label 1 "Intervals: 95 % over seeds.".(paper eq "1" ? " Dashed, open: the paper's table (its LAFAN1 windows, 5 runs)." : "") \
      at screen 0.5, screen 0.03 center font face.",8"
  }
  plot for [i=0:n-1] data using (pick(i, "kappa")):(pick(i, c) * scale):(pick(i, c."_lo") * scale):(pick(i, c."_hi") * scale) \
         with yerrorbars linetype i + 1 pointtype 0 notitle, \
       for [i=0:n-1] data using (pick(i, "kappa")):(pick(i, c) * scale) with linespoints linetype i + 1 pointtype 7 title word(labels, i + 1), \
       for [i=0:n-1] data using (pick(i, "kappa")):(pick(i, "paper_".c) * scale) with linespoints linetype i + 9 pointtype 6 notitle
}
unset multiplot
