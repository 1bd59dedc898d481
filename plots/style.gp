# The look that all figures share. A script sets width and height (pixels) and loads this file; ext
# (svg, png, gif) and out (file to write) come from dsim plot.
#
# Colours are Okabe and Ito's, which people with any colour vision tell apart; line type n + 8 is
# line type n dashed.

set encoding utf8
set datafile separator comma
set datafile columnheaders

face = (ext eq "svg") ? "Helvetica,Arial,DejaVu Sans,sans-serif" : "DejaVu Sans"
if (ext eq "svg") {
  set terminal svg size width,height noenhanced font face.",12" background "#ffffff"
}
if (ext eq "png") {
  set terminal pngcairo size width,height noenhanced font face.",10" background "#ffffff"
}
set output out

array palette[8] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#8c6d1f"]
do for [i=1:8] {
  set linetype i     linewidth 1.8 linecolor rgb palette[i] dashtype solid pointtype i pointsize 0.8
  set linetype i + 8 linewidth 1.8 linecolor rgb palette[i] dashtype (6, 4) pointtype i pointsize 0.8
}
set linetype cycle 16

# roles: the same thing has the same colour in every figure
policy    = "#0072b2"
policy2   = "#56b4e9" # the policy's far side
reference = "#9a9a9a"
failed    = "#d55e00"
ink       = "#303030"

set border 3 linecolor rgb ink linewidth 0.8
set tics nomirror scale 0.6 textcolor rgb ink
set grid linetype 1 linecolor rgb "#d0d0d0" linewidth 0.6
set key Left reverse noautotitle samplen 2.2 spacing 1.1 textcolor rgb ink

# the rows of one series in a tidy file: other rows become undefined and are not drawn
pick(i, c) = column("series") == i ? column(c) : NaN
