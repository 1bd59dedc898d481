# Accuracy against cost of a tossed cube (arXiv 2506.14186): error of the loss, of the gradient as
# published against its own limit, and against the derivative. Filled: ours, one core; open: the
# paper's table.
# data: series (ours 0..n-1, the paper's n..2n-1), setting, forward_s, gradient_s, loss_error, ...

width = 1300
height = 500
load home."/plots/style.gp"

n = int(nseries)
set multiplot layout 1,3 margins 0.06,0.99,0.24,0.87 spacing 0.06,0 \
  title "Tossed cube: error against cost" font face.",13"
set logscale xy
set format "10^{%L}"
set format x "%.0e"
set format y "%.0e"
set xrange [1e-5:400]
unset key
do for [k=1:3] {
  yc = word("loss_error grad_error event_error", k)
  xc = k == 1 ? "forward_s" : "gradient_s"
  set xlabel k == 1 ? "seconds, forward" : "seconds, with gradient"
  set ylabel k == 1 ? "error of the loss" : k == 2 ? "gradient of the steps: error to its own limit" : "error to the derivative" offset 0.5
  set title k == 3 ? "ours with the terms of touchdown and lift-off" : ""
  set yrange [k == 1 ? 1e-14 : 1e-8 : 20]
  plot for [i=0:n-1] data using (pick(i, xc)):(pick(i, yc)) with linespoints linetype i + 1 pointtype 7 pointsize 0.6, \
       for [i=0:n-1] data using (pick(n + i, xc)):(pick(n + i, yc)) with linespoints linetype i + 9 pointtype 6 pointsize 0.6
}
# the legend on a line of its own, as wide as the picture
unset title
unset xlabel
unset ylabel
unset tics
unset border
unset logscale
set xrange [0:1]
set yrange [0:1]
set lmargin at screen 0.01
set rmargin at screen 0.99
set bmargin at screen 0
set tmargin at screen 0.12
set key at screen 0.5, screen 0.06 center center horizontal maxrows 1 width 1
plot for [i=0:n-1] NaN with linespoints linetype i + 1 pointtype 7 pointsize 0.6 title word(labels, i + 1), \
     NaN with linespoints linetype 15 pointtype 6 pointsize 0.6 title "the paper's"
unset multiplot
