package plan

import "strings"

// Reference returns the page docs/reference/plan.md with what the table of operations says: the first paragraph of each
// section and its table.
func Reference(page string) string {
	for _, o := range operations {
		before, rest, ok := strings.Cut(page, "\n## "+o.name+"\n")
		if !ok {
			return ""
		}
		_, after, _ := strings.Cut(rest, "\n|---|---|\n")
		_, after, _ = strings.Cut("\n"+after, "\n\n")
		about := "as above"
		if o.name == "let" {
			about = "the operation, the name and the guard; every node has them"
		}
		var b strings.Builder
		b.WriteString(before + "\n## " + o.name + "\n\n" + o.does + "\n\n| key | meaning |\n|---|---|\n| `op`, `id`, `when` | " + about + " |\n")
		for _, k := range o.keys {
			b.WriteString("| `" + strings.ReplaceAll(k.names, ", ", "`, `") + "` | " + k.is + " |\n")
		}
		if page = b.String(); after != "" {
			page += "\n" + after
		}
	}
	return page
}
