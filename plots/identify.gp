# Identification of a cube's side from tosses (arXiv 2506.14186): the side along the iterations of
# every fit. Band: five percent around the real side.
# data: series, iteration, side_mm, loss; labels: names of the series, quoted; nseries

width = 1000
height = 520
load home."/plots/style.gp"

n = int(nseries)
set title "Cube identified from tosses" font face.",13"
set xlabel "iteration"
set ylabel "side (mm)" offset 0.5
set xrange [0:*]
set autoscale xfix
set object 1 rectangle from graph 0, first 99.56 to graph 1, first 110.04 behind fillcolor rgb reference fillstyle transparent solid 0.25 noborder
set key outside right top
plot for [i=0:n-1] data using (pick(i, "iteration")):(pick(i, "side_mm")) with lines linetype i + 1 linewidth 1.4 title word(labels, i + 1), \
     104.8 with lines linecolor rgb ink dashtype (2, 4) title "real side"
