# Tracking error per motion: bars for the training simulator, MuJoCo, and the paper's table.
# data: label, then train_ and mujoco_ (cm, std, falls, n), paper_ (cm, std); nrow; subtitle
# kinds: those of train, mujoco, paper that have data; simulated: those of train, mujoco

n = int(nrow)
nk = words(kinds)
width = n < 5 ? 780 : 320 + 95 * n
height = 460
load home."/plots/style.gp"

name(kind) = kind eq "train" ? "training simulator" : kind eq "mujoco" ? "MuJoCo" : "paper, MuJoCo"
fill(kind) = kind eq "train" ? 0x56b4e9 : kind eq "mujoco" ? 0x0072b2 : 0xc8c8c8

set title "Tracking error".(subtitle eq "" ? "" : ": ".subtitle) font face.",13"
set ylabel "E_track (cm)"
set yrange [0:*]
set offsets 0, 0, graph 0.18, 0
set xrange [-0.6:n-0.4]
set xtics scale 0
if (n > 8) set xtics rotate by 20 right
unset grid
set grid ytics
set bmargin (n > 8 ? 8 : 5.5)
set key top left horizontal
set label 1 "E_track: mean distance of all bodies to the reference, in the world. Whiskers: one standard deviation over episodes and seeds.".\
  (strstrt(kinds, "paper") ? "\nPaper: SHAC+BCG, policies trained with another reward (ADD), observation noise and latency: compare with caution." : "") \
  at screen 0.99, screen 0.055 right font face.",8" textcolor rgb ink

w = 0.78 / (nk < 2 ? 2 : nk)
x(k) = column(0) + (k - 0.5 * (nk + 1)) * w
top(kind) = column(kind."_cm") + column(kind."_std")
fell(kind) = column(kind."_falls") > 0 ? sprintf("%d/%d fell", column(kind."_falls"), column(kind."_n")) : ""
set style fill solid 0.9 noborder
plot for [k=1:nk] data using (x(k)):(column(word(kinds, k)."_cm")):(w * 0.94) with boxes \
       linecolor rgb fill(word(kinds, k)) title name(word(kinds, k)), \
     for [k=1:nk] data using (x(k)):(column(word(kinds, k)."_cm") - column(word(kinds, k)."_std")):(0):(2 * column(word(kinds, k)."_std")) \
       with vectors heads size screen 0.003,90 linewidth 1 linecolor rgb ink, \
     for [k=1:nk] data using (x(k)):(top(word(kinds, k))):(sprintf("%.1f", column(word(kinds, k)."_cm"))) \
       with labels offset 0, 0.6 font face.",9", \
     for [k=1:words(simulated)] data using (x(k)):(top(word(kinds, k))):(fell(word(kinds, k))) \
       with labels offset 0, 1.5 font face.",9" textcolor rgb failed, \
     data using 0:(-1):xticlabels(stringcolumn("label")) with dots
