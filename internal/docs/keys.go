package docs

import (
	"regexp"
	"slices"
	"strings"
)

var code = regexp.MustCompile("`([^`]+)`")

// Keys returns the sorted keys listed in the tables of a page, by the heading above each table. The keys are the texts in code
// font in the first column.
func Keys(page string) map[string][]string {
	keys := map[string][]string{}
	heading := ""
	for line := range strings.Lines(page) {
		if name, ok := strings.CutPrefix(line, "#"); ok {
			heading = strings.TrimSpace(strings.TrimLeft(name, "#"))
		} else if cells := strings.Split(line, "|"); len(cells) > 2 {
			for _, m := range code.FindAllStringSubmatch(cells[1], -1) {
				keys[heading] = append(keys[heading], m[1])
			}
		}
	}
	for _, of := range keys {
		slices.Sort(of)
	}
	return keys
}
