package bench

import (
	"bytes"
	"fmt"
	"image/color"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// Measures of plots, in points.
const (
	plotWidth   = vg.Length(640)
	plotMargin  = vg.Length(60)
	barWidth    = vg.Length(12)
	barSpacing  = vg.Length(13)
	groupHeight = vg.Length(66)
	labelGap    = vg.Length(4)
)

// colours of the contenders, which differ in brightness as well.
var colours = map[string]color.Color{
	BuiltIn: color.RGBA{0x9a, 0xa5, 0xb1, 0xff}, Services: color.RGBA{0x1f, 0x5f, 0xa8, 0xff},
	Embedded: color.RGBA{0x58, 0xa1, 0xdd, 0xff}, Floor: color.RGBA{0xd9, 0xa4, 0x41, 0xff},
}

// Plot draws one figure as SVG: a group of bars for each scenario. The longest bar of
// each group has the same length, because values of different scenarios differ by
// orders of magnitude. The result is empty when no scenario has the figure.
func Plot(f Figure, results []Result) (string, error) {
	groups := slices.DeleteFunc(grouped(results), func(g scenarioResults) bool { return g.largest(f) == 0 })
	if len(groups) == 0 {
		return "", nil
	}
	slices.Reverse(groups) // the vertical axis begins at the bottom
	var names []string
	for _, g := range groups {
		names = append(names, g.name)
	}
	p := plot.New()
	p.Title.Text = textOf(f).title
	p.NominalY(names...)
	p.HideX()
	p.X.Min, p.X.Max = 0, 1.4 // room for labels and legend
	p.Legend.Top = true
	for i, c := range contenders() {
		offset := (vg.Length(len(colours)-1)/2 - vg.Length(i)) * barSpacing
		if err := addBars(p, c.name, offset, groups, textOf(f)); err != nil {
			return "", fmt.Errorf("plot of %s: %w", f, err)
		}
	}
	svg, err := p.WriterTo(plotWidth, vg.Length(len(groups))*groupHeight+plotMargin, "svg")
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	_, err = svg.WriteTo(&out)
	return out.String(), err
}

// addBars adds the bars of one contender, and their values as labels.
func addBars(p *plot.Plot, contender string, offset vg.Length, groups []scenarioResults, text figureText) error {
	lengths, labels := plotter.Values{}, plotter.XYLabels{}
	for i, g := range groups {
		value, ok := g.by[contender].Figures[text.Figure]
		length := value / g.largest(text.Figure)
		lengths = append(lengths, length)
		if ok {
			labels.XYs = append(labels.XYs, plotter.XY{X: length, Y: float64(i)})
			labels.Labels = append(labels.Labels, fmt.Sprintf("%.*f", text.digits, value))
		}
	}
	bars, err := plotter.NewBarChart(lengths, barWidth)
	if err != nil {
		return err
	}
	bars.Horizontal, bars.Color, bars.Offset, bars.LineStyle.Width = true, colours[contender], offset, 0
	p.Add(bars)
	p.Legend.Add(contender, bars)
	if len(labels.Labels) == 0 {
		return nil
	}
	values, err := plotter.NewLabels(labels)
	if err != nil {
		return err
	}
	values.Offset = vg.Point{X: labelGap, Y: offset - labelGap}
	p.Add(values)
	return nil
}

// largest is the largest value of a figure in a scenario; 0 if nobody has it.
func (g scenarioResults) largest(f Figure) float64 {
	largest := 0.0
	for _, r := range g.by {
		largest = max(largest, r.Figures[f])
	}
	return largest
}
