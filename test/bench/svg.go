package bench

import (
	"fmt"
	"html"
	"strings"
)

// Measures of plots, in pixels.
const (
	plotWidth  = 860
	plotLabels = 190 // left of the bars
	plotBars   = 540 // the longest bar
	barHeight  = 16
	groupSpace = 14
	plotTop    = 58
)

// colours of the contenders, which differ in brightness as well.
var colours = map[string]string{BuiltIn: "#9aa5b1", Services: "#1f5fa8", Embedded: "#58a1dd", Floor: "#d9a441"}

// Plot draws one figure: a group of bars for each scenario, each group on a scale
// of its own, because their values differ by orders of magnitude. Empty when no
// scenario has the figure.
func Plot(f Figure, results []Result) string {
	var body strings.Builder
	y := plotTop
	for _, g := range grouped(results) {
		y = drawGroup(&body, y, g, f)
	}
	if y == plotTop {
		return ""
	}
	var out strings.Builder
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n",
		plotWidth, y, plotWidth, y)
	fmt.Fprintf(&out, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", plotWidth, y)
	fmt.Fprintf(&out, `<text x="10" y="20" font-size="15">%s</text>`+"\n", html.EscapeString(textOf(f).title))
	x := 10
	for _, c := range contenders() {
		fmt.Fprintf(&out, `<rect x="%d" y="32" width="12" height="12" fill="%s"/><text x="%d" y="42">%s</text>`+"\n", x, colours[c.name], x+17, c.name)
		x += 120
	}
	out.WriteString(body.String() + "</svg>\n")
	return out.String()
}

func textOf(f Figure) figureText {
	for _, text := range figureTexts {
		if text.Figure == f {
			return text
		}
	}
	return figureText{Figure: f, title: string(f), digits: 2}
}

// drawGroup draws the bars of a scenario below y and returns where they end.
func drawGroup(out *strings.Builder, y int, g scenarioResults, f Figure) int {
	longest := 0.0
	for _, r := range g.by {
		longest = max(longest, r.Figures[f])
	}
	if longest == 0 {
		return y
	}
	fmt.Fprintf(out, `<text x="10" y="%d">%s</text>`+"\n", y+barHeight-4, html.EscapeString(g.name))
	for _, c := range contenders() {
		value, ok := g.by[c.name].Figures[f]
		if !ok {
			continue
		}
		fmt.Fprintf(out, `<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/><text x="%.1f" y="%d">%.*f</text>`+"\n",
			plotLabels, y, value/longest*plotBars, barHeight-2, colours[c.name],
			plotLabels+value/longest*plotBars+6, y+barHeight-4, textOf(f).digits, value)
		y += barHeight
	}
	return y + groupSpace
}
