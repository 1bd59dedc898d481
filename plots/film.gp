# The film strip as a moving picture (GIF): the camera goes with the reference; marks under the floor
# every half metre show how it moves.
# data: the drawing that src/figure/strip.h describes, one data set per pose; title; npose; top (m);
# delay (hundredths of a second)

width = 480
height = 400
load home."/plots/style.gp"
set terminal gif animate delay int(real(delay) + 0.5) loop 0 size width,height noenhanced font face.",10" background "#ffffff"
set output out

half = 0.66 * (real(top) + 0.2) * width / height
shape(s, c) = $4 == s ? column(c) : NaN
# reference, policy's left and other limbs, policy after a fall, floor
array colour[5] = [0xc4c4c4, 0x56b4e9, 0x0072b2, 0xd55e00, 0x909090]
set title title
set xrange [-half:half]
set yrange [-0.1:real(top) + 0.1]
set size ratio -1
set xlabel "ahead of the reference (m)"
set ylabel "height (m)"
set style fill solid 1 noborder
set key at graph 0.99, graph 0.99 right top
set arrow 1 from graph 0, first 0 to graph 1, first 0 nohead linewidth 1.2 linecolor rgb "#707070" back
unset grid
do for [i=0:int(npose)-1] {
  plot data index i using (shape(0, 5)):6:7:8:(colour[$3 + 1]) with vectors nohead linewidth 2.4 linecolor rgb variable, \
       data index i using (shape(1, 5)):6:9:(colour[$3 + 1]) with circles linecolor rgb variable, \
       data index i using (shape(2, 5) - 0.95 * half):(real(top) + 0.02):(sprintf("%.1f s", $7)) with labels left, \
       NaN with lines linewidth 3 linecolor rgb "#c4c4c4" title "reference", \
       NaN with lines linewidth 3 linecolor rgb policy2 title "policy (left limbs)", \
       NaN with lines linewidth 3 linecolor rgb policy title "policy"
}
set output
