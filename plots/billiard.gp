# Billiard (arXiv 2506.14186): loss and gradients along the sideways push, and training from a miss.
# data: series (located adaptive adaptive_cfd adaptive_softplus euler euler_cfd), u0, loss, grad, ...
# training: series, iteration, loss, u0; labels: their names, quoted; nfit

width = 1300
height = 460
load home."/plots/style.gp"

nf = int(nfit)
set multiplot layout 1,3 margins 0.06,0.985,0.26,0.87 spacing 0.065,0 \
  title "Billiard: a shot that may miss" font face.",13"
set xlabel "sideways push u0 (N)"
set ylabel "loss, squared distance (m²)" offset 0.5
set xrange [-5:5]
unset key
plot data using (pick(4, "u0")):(pick(4, "loss")) with lines linetype 2, \
     data using (pick(0, "u0")):(pick(0, "loss")) with lines linetype 1
set ylabel "gradient" offset 0.5
plot data using (pick(0, "u0")):(pick(0, "grad_event")) with lines linetype 1, \
     data using (pick(1, "u0")):(pick(1, "grad")) with lines linetype 6, \
     data using (pick(4, "u0")):(pick(4, "grad")) with lines linetype 2 linewidth 1, \
     data using (pick(2, "u0")):(pick(2, "grad")) with lines linetype 3, \
     data using (pick(3, "u0")):(pick(3, "grad")) with lines linetype 11 linewidth 1, \
     data using (pick(5, "u0")):(pick(5, "grad")) with lines linetype 5 linewidth 1
if (nf > 0) {
  set xrange [*:*]
  set xlabel "iteration"
  set ylabel "loss while training (m²)" offset 0.5
  set yrange [0:*]
  set key top right
  plot for [i=0:nf-1] training using (pick(i, "iteration")):(pick(i, "loss")) with lines linetype i + 1 title word(labels, i + 1)
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
plot NaN with lines linetype 1 title "steps end at touchdown, with its term", \
     NaN with lines linetype 6 title "adaptive", \
     NaN with lines linetype 2 title "Euler, h = 0.01", \
     NaN with lines linetype 3 title "adaptive + CFD", \
     NaN with lines linetype 11 title "adaptive + CFD, softplus", \
     NaN with lines linetype 5 title "Euler + CFD"
unset multiplot
