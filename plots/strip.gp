# Film strip: stick figures of a policy over its reference, side by side in time, and the error below.
# data: the drawing that src/figure/strip.h describes
# title; rows, per_row (poses), slot (m), top (m), fail_time (s, < 0: none), e_max (cm)

span = real(per_row) * real(slot)
low = 0.12 * real(slot)
high = real(top) + 0.05 * real(slot)
width = 1240
left = 62.0; right = 14.0; head = 76.0; gap = 34.0; foot = 48.0; curve = 110.0
scale = (width - left - right) / span
panel = scale * (high + low)
height = int(head + int(rows) * (panel + gap) + 16 + curve + foot)
load home."/plots/style.gp"

shape(l, s, c) = column("row") == row && column("layer") == l && column("shape") == s ? column(c) : NaN
fell = real(fail_time) >= 0

set multiplot title title font face.",13"
set lmargin at screen left / width
set rmargin at screen 1 - right / width
set xrange [-0.5 * real(slot):span - 0.5 * real(slot)]
set yrange [-low:high]
set ylabel "height (m)" offset 0.5
set ytics 0.5
unset grid
set border 2
unset xtics
set style fill solid 1 noborder
do for [row=0:int(rows)-1] {
  set tmargin at screen 1 - (head + row * (panel + gap)) / height
  set bmargin at screen 1 - (head + row * (panel + gap) + panel) / height
  unset label
  unset arrow
  set arrow 1 from graph 0, first 0 to graph 1, first 0 nohead linewidth 1.2 linecolor rgb "#707070" back
  unset key
  if (row == 0) {
    set key at screen 1 - right / width, screen 1 - 36.0 / height right center horizontal samplen 1.5
    set label 2 "Each pose is seen from the right of the reference, at the time below it. Scale: 0.5 m" at screen left / width, screen 1 - 60.0 / height left font face.",9"
    bar = left + 512
    set arrow 2 from screen bar / width, screen 1 - 60.0 / height to screen (bar + 0.5 * scale) / width, screen 1 - 60.0 / height heads size screen 0.003,90 linewidth 1.4 linecolor rgb ink
  }
  plot data using (shape(0, 0, "x")):(shape(0, 0, "z")):"dx":"dz" with vectors nohead linewidth 2.4 linecolor rgb "#c4c4c4" title "reference", \
       data using (shape(0, 1, "x")):(shape(0, 1, "z")):"r" with circles linecolor rgb "#c4c4c4", \
       data using (shape(1, 0, "x")):(shape(1, 0, "z")):"dx":"dz" with vectors nohead linewidth 1.8 linecolor rgb policy2 title "policy (left limbs)", \
       data using (shape(2, 0, "x")):(shape(2, 0, "z")):"dx":"dz" with vectors nohead linewidth 2.0 linecolor rgb policy title "policy", \
       data using (shape(2, 1, "x")):(shape(2, 1, "z")):"r" with circles linecolor rgb policy, \
       data using (shape(3, 0, "x")):(shape(3, 0, "z")):"dx":"dz" with vectors nohead linewidth 2.0 linecolor rgb failed title (fell ? "policy, after the fall" : ""), \
       data using (shape(3, 1, "x")):(shape(3, 1, "z")):"r" with circles linecolor rgb failed, \
       data using (shape(0, 2, "x")):(-low * 1.0):(sprintf("%.1f s", column("dx"))) with labels offset 0, -0.8 font face.",9"
}

# the error, in centimetres, up to a fall
unset label
unset arrow
unset key
set border 3
set grid
set tmargin at screen (foot + curve) / height
set bmargin at screen foot / height
set xtics nomirror scale 0.6
step = real(e_max) / 4
unit = step > 0 ? 10 ** floor(log10(step)) : 1
tick = step < 1.5 * unit ? unit : step < 3.5 * unit ? 2 * unit : step < 7.5 * unit ? 5 * unit : 10 * unit
set ytics tick
set xrange [0:real(duration)]
set yrange [0:(real(e_max) > 0 ? 1.2 * real(e_max) : 1)]
set xlabel "time (s)" offset 0, 0.4
set ylabel "body error (cm)" offset 0.5
set label 1 "mean distance of all bodies to the reference" at graph 0.01, graph 0.92 left font face.",9"
if (fell) {
  set arrow 1 from first real(fail_time), graph 0 to first real(fail_time), graph 1 nohead linewidth 1.5 linecolor rgb failed
  set label 2 sprintf(" failed at %.1f s", real(fail_time)) at first real(fail_time), graph 0.75 left textcolor rgb failed
}
plot data using (column("shape") == 3 ? column("x") : NaN):"z" with lines linecolor rgb policy linewidth 1.5
unset multiplot
