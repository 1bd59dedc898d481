# Tossed objects (arXiv 2506.14186): a column per body; where it ends (top), and the derivative by
# the vertical velocity (below).
# data: body (ball cube capsule cylinder ellipsoid), series (euler adaptive adaptive_cfd
# adaptive_soft located), u0, loss, grad, grad_event, grad_fd

width = 1400
height = 620
load home."/plots/style.gp"

row(b, s, c) = column("body") == b && column("series") == s ? column(c) : NaN
set multiplot layout 2,5 margins 0.05,0.99,0.17,0.89 spacing 0.035,0.07 \
  title "Tossed objects: final position and its derivative" font face.",13"
set xrange [-3:-1]
unset key
do for [k=1:2] {
  do for [b=0:4] {
    unset xlabel
    unset ylabel
    unset title
    set yrange [*:*]
    if (k == 1) { set title word("ball cube capsule cylinder ellipsoid", b + 1) }
    if (k == 2) { set xlabel "vertical velocity (m/s)"; set yrange [-2.5:2.5] }
    if (k == 2 && b == 0) { set yrange [-0.2:0.2] }
    if (b == 0) { set ylabel (k == 1 ? "y(1 s) (m)" : "dy/du") offset 0.5 }
    if (k == 1) {
      plot data using "u0":(row(b, 0, "loss")) with lines linetype 2 linewidth 1, \
           data using "u0":(row(b, 3, "loss")) with lines linetype 4 linewidth 1, \
           data using "u0":(row(b, 4, "loss")) with lines linetype 1
    } else {
      plot data using "u0":(row(b, 0, "grad")) with lines linetype 2 linewidth 0.7, \
           data using "u0":(row(b, 2, "grad")) with lines linetype 5 linewidth 1, \
           data using "u0":(row(b, 3, "grad")) with lines linetype 4 linewidth 1, \
           data using "u0":(row(b, 1, "grad")) with lines linetype 3 linewidth 1, \
           data using "u0":(row(b, 4, "grad_event")) with lines linetype 1, \
           data using "u0":(row(b, 4, "grad_fd")) every 8 with points linetype 7 pointtype 6 pointsize 0.5
    }
  }
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
set tmargin at screen 0.1
set key at screen 0.5, screen 0.04 center center horizontal maxrows 1 width 1
plot NaN with lines linetype 2 title "Euler, h = 0.01", \
     NaN with lines linetype 3 title "adaptive", \
     NaN with lines linetype 5 title "adaptive + CFD", \
     NaN with lines linetype 4 title "adaptive, soft manifold", \
     NaN with lines linetype 1 title "steps end at touchdown, with its term", \
     NaN with points linetype 7 pointtype 6 pointsize 0.5 title "central differences"
unset multiplot
