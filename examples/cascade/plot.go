package cascade

import (
	"fmt"
	"math"
	"strings"
)

// The size of the plot, and the room around its axes.
const (
	width, height            = 760, 500
	left, right, top, bottom = 84, 40, 60, 68
)

// chart is an SVG of accuracy over the share that the large model was asked.
type chart struct {
	strings.Builder
	floor float64 // the accuracy at the bottom
}

// plot draws the table, between routing by chance and the oracle.
func (r Report) plot() string {
	base, same := r.Baselines, r.Baselines.random(r.LargeShare)
	c := &chart{floor: math.Floor(10*min(base.SmallOnly.Accuracy, base.LargeOnly.Accuracy, r.Accuracy)-0.5) / 10}
	c.floor = max(c.floor, 0)
	c.add(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="Helvetica, Arial, sans-serif" font-size="13">`, width, height)
	c.add(`<rect width="100%%" height="100%%" fill="#fff"/>`)
	c.add(`<text x="%d" y="30" font-size="17" fill="#222">A gate of checks between two models: %d questions</text>`, left, r.Questions)
	c.axes()

	// A router that knows everything, but may ask the large model less often, gains
	// with each question that it asks, up to the oracle.
	c.line("#2a8f6a", "6 4", base.SmallOnly, base.Oracle, Point{LargeShare: 1, Accuracy: base.Oracle.Accuracy})
	c.line("#999", "2 4", base.SmallOnly, base.LargeOnly)
	c.line("#c0392b", "none", same, r.Point)
	c.text(Point{LargeShare: 0.6, Accuracy: base.random(0.6).Accuracy}, 0, 26, "start", "#777", "random")

	c.dot(base.SmallOnly, "#444")
	c.text(base.SmallOnly, 10, 20, "start", "#444", "small only, %.1f %%", 100*base.SmallOnly.Accuracy)
	c.dot(base.LargeOnly, "#444")
	c.text(base.LargeOnly, 0, -12, "end", "#444", "large only, %.1f %%", 100*base.LargeOnly.Accuracy)
	c.dot(base.Oracle, "#2a8f6a")
	c.text(base.Oracle, 0, -12, "start", "#2a8f6a", "oracle, %.1f %%", 100*base.Oracle.Accuracy)
	c.dot(r.Point, "#c0392b")
	c.text(r.Point, 12, -16, "start", "#c0392b", `<tspan font-weight="bold">cascade, %.1f %%</tspan>`, 100*r.Accuracy)
	c.text(r.Point, 12, 2, "start", "#c0392b", "%.0f %% asked, %.0f %% of the gap", 100*r.LargeShare, 100*r.GapRecovered)
	c.add(`</svg>`)
	return c.String()
}

func (c *chart) add(format string, args ...any) { fmt.Fprintf(c, format+"\n", args...) }

func (c *chart) x(share float64) float64 { return left + share*(width-left-right) }

func (c *chart) y(accuracy float64) float64 {
	return top + (1-accuracy)/(1-c.floor)*(height-top-bottom)
}

// axes draws the grid, a line for every tenth of accuracy.
func (c *chart) axes() {
	for tenth := int(math.Round(10 * c.floor)); tenth <= 10; tenth++ {
		y := c.y(float64(tenth) / 10)
		c.add(`<path d="M%d %.1f H%d" stroke="#e4e4e4"/>`, left, y, width-right)
		c.add(`<text x="%d" y="%.1f" text-anchor="end" fill="#444">%d %%</text>`, left-10, y+4, 10*tenth)
	}
	for share := 0; share <= 100; share += 20 {
		c.add(`<text x="%.1f" y="%d" text-anchor="middle" fill="#444">%d %%</text>`, c.x(float64(share)/100), height-bottom+22, share)
	}
	c.add(`<text x="%d" y="%d" text-anchor="middle" fill="#222">questions that the large model was asked</text>`, (left+width-right)/2, height-20)
	c.add(`<text transform="translate(24 %d) rotate(-90)" text-anchor="middle" fill="#222">right answers</text>`, (top+height-bottom)/2)
}

func (c *chart) line(color, dashes string, points ...Point) {
	var d []string
	for _, p := range points {
		d = append(d, fmt.Sprintf("%.1f,%.1f", c.x(p.LargeShare), c.y(p.Accuracy)))
	}
	c.add(`<polyline points="%s" fill="none" stroke="%s" stroke-width="1.5" stroke-dasharray="%s"/>`, strings.Join(d, " "), color, dashes)
}

func (c *chart) dot(p Point, color string) {
	c.add(`<circle cx="%.1f" cy="%.1f" r="5" fill="%s"/>`, c.x(p.LargeShare), c.y(p.Accuracy), color)
}

// text writes beside a point, on a white ground that keeps lines out of it.
func (c *chart) text(p Point, dx, dy float64, anchor, color, format string, args ...any) {
	c.add(`<text x="%.1f" y="%.1f" text-anchor="%s" fill="%s" stroke="#fff" stroke-width="4" paint-order="stroke">%s</text>`,
		c.x(p.LargeShare)+dx, c.y(p.Accuracy)+dy, anchor, color, fmt.Sprintf(format, args...))
}
