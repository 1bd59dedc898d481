# Gradient estimators: distance of the mean from the derivative, spread of one estimate (both as
# shares of the derivative), and the loss that optimisation ends at with the same budget.
# data: task (0..5), estimator (0 truth .. 8), bias_relative, ..., std_relative, ..., final_loss, success

width = 1150
height = 680
load home."/plots/style.gp"

tasks = "bounce toss billiard ground ground_wall two_balls"
set multiplot layout 2,6 margins 0.065,0.99,0.25,0.88 spacing 0.045,0.05 \
  title "Gradients through contact: error (above) and final loss at equal cost (below)" font face.",13"
set xrange [-0.6:8.6]
set logscale y
set format y "%.0e"
unset key
row(k, c) = column("task") == k ? column(c) : NaN
do for [r=0:1] {
  do for [k=0:5] {
    unset ylabel
    if (k == 0) { set ylabel (r == 0 ? "bias and spread / |derivative|" : "final loss") offset 1 }
    set title (r == 0 ? word(tasks, k + 1) : "")
    set xtics ("" 0, "" 1, "" 2, "" 3, "" 4, "" 5, "" 6, "" 7, "" 8)
    if (r == 1) {
      set xtics rotate by 90 right ("truth" 0, "plain" 1, "adaptive" 2, "+ events" 3, "cfd" 4, "adaptive cfd" 5, "bundle" 6, "first order" 7, "zeroth order" 8)
    }
    if (r == 0) {
      plot data using (column("estimator")):(row(k, "bias_relative")) with points linetype 1 pointtype 7, \
           data using (column("estimator")):(row(k, "std_relative")) with points linetype 2 pointtype 6
    } else {
      plot data using (column("estimator")):(column("success") > 0.5 ? row(k, "final_loss") : NaN) with points linetype 3 pointtype 5, \
           data using (column("estimator")):(column("success") > 0.5 ? NaN : row(k, "final_loss")) with points linetype 7 pointtype 4
    }
  }
}
# the legend on a line of its own, as wide as the picture
unset title
unset ylabel
unset tics
unset border
unset logscale
set xrange [0:1]
set yrange [0:1]
set lmargin at screen 0.01
set rmargin at screen 0.99
set bmargin at screen 0
set tmargin at screen 0.1
set key at screen 0.5, screen 0.04 center center horizontal maxrows 1 width 1
plot NaN with points linetype 1 pointtype 7 title "bias of the mean", \
     NaN with points linetype 2 pointtype 6 title "standard deviation of one estimate", \
     NaN with points linetype 3 pointtype 5 title "final loss, solved", \
     NaN with points linetype 7 pointtype 4 title "final loss, not solved"
unset multiplot
