package puzzle

import (
	"fmt"
	"slices"
	"strings"
)

// Country is a map to colour.
type Country struct {
	States  []string   `json:"states"`
	Borders [][]string `json:"borders"` // pairs of states
	Palette []string   `json:"palette"`
}

// Colouring is the colour of each state.
type Colouring struct {
	Colours map[string]string `json:"colours"`
}

var australia = Country{
	States: []string{"Western Australia", "Northern Territory", "South Australia", "Queensland", "New South Wales", "Victoria", "Tasmania"},
	Borders: [][]string{
		{"Western Australia", "Northern Territory"}, {"Western Australia", "South Australia"},
		{"Northern Territory", "South Australia"}, {"Northern Territory", "Queensland"},
		{"South Australia", "Queensland"}, {"South Australia", "New South Wales"}, {"South Australia", "Victoria"},
		{"Queensland", "New South Wales"}, {"New South Wales", "Victoria"},
	},
	Palette: []string{"red", "green", "blue"},
}

// legalColouring returns every error of a colouring.
func legalColouring(c Country, said Colouring) error {
	var wrong []string
	for _, state := range c.States {
		if colour, ok := said.Colours[state]; !ok {
			wrong = append(wrong, state+" has no colour")
		} else if !slices.Contains(c.Palette, colour) {
			wrong = append(wrong, fmt.Sprintf("%s is %q, want one of %s", state, colour, strings.Join(c.Palette, ", ")))
		}
	}
	for _, border := range c.Borders {
		a, b := said.Colours[border[0]], said.Colours[border[1]]
		if a == b && a != "" {
			wrong = append(wrong, fmt.Sprintf("%s and %s are both %s", border[0], border[1], a))
		}
	}
	return listed(wrong)
}
