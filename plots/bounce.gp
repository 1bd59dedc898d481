# A point that falls on a floor (arXiv 2506.14186): loss |q(2 s) - 1| and the derivative of q(2 s) by
# the start, for a flipping velocity and a penalty at four step sizes, beside the closed form.
# data: model (0 exact, 1 ideal, 2 penalty), setting (0 none, 1..4: h = 0.1 .. 1e-4), q0, ...

width = 1000
height = 430
load home."/plots/style.gp"

row(m, s, c) = column("model") == m && column("setting") == s ? column(c) : NaN
set multiplot layout 1,2 margins 0.07,0.985,0.25,0.88 spacing 0.09,0 \
  title "Bouncing point: fixed steps against the closed form" font face.",13"
set xlabel "start height q0 (m)"
set xrange [0:3]
unset key
do for [k=1:2] {
  c = word("loss slope", k)
  set ylabel k == 1 ? "loss |q(2 s) - 1|" : "dq(2 s)/dq0" offset 0.5
  if (k == 2) { set yrange [-3:4] }
  plot data using "q0":(row(1, 1, c)) with lines linetype 2, \
       data using "q0":(row(2, 1, c)) with lines linetype 5 linewidth 1, \
       data using "q0":(row(2, 2, c)) with lines linetype 6 linewidth 1, \
       data using "q0":(row(2, 3, c)) with lines linetype 3 linewidth 1, \
       data using "q0":(row(2, 4, c)) with lines linetype 1, \
       data using "q0":(row(0, 0, c)) with lines linetype 7 dashtype (6, 6) title "closed form"
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
plot NaN with lines linetype 2 title "velocity flips, h = 0.1", \
     NaN with lines linetype 5 title "penalty, h = 0.1", \
     NaN with lines linetype 6 title "0.01", \
     NaN with lines linetype 3 title "0.001", \
     NaN with lines linetype 1 title "0.0001", \
     NaN with lines linetype 7 dashtype (6, 6) title "closed form"
unset multiplot
