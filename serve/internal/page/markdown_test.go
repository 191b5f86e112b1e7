package page

import (
	"strings"
	"testing"
)

func TestMarkdown(t *testing.T) {
	for text, want := range map[string]string{
		"plain":                           `<div class="words">plain</div>`,
		"a < b":                           `<div class="words">a &lt; b</div>`,
		"**bold** and `code`":             "<strong>bold</strong> and <code>code</code>",
		"# Title":                         "<p><b>Title</b></p>",
		"- one\n- two":                    "<li>one</li>",
		"| a | b |\n|---|---|\n| 1 | 2 |": "<td>1</td>",
		"[a](https://stone.example)":      `<a href="https://stone.example">a</a>`,
		"[a](javascript:alert(1))":        `<a href="">a</a>`,
		"[a](data:text/html;base64,PA)":   `<a href="">a</a>`,
		"![pixel](https://x.example/p)":   `[picture: pixel]`,
		"*a* <script>alert(1)</script>":   "<em>a</em> <!-- raw HTML omitted -->alert(1)",
		"<img src=x onerror=alert(1)> *":  "<!-- raw HTML omitted -->",
		"```go\nx := \"<b>\"\n```":        "x := &quot;&lt;b&gt;&quot;",
	} {
		got := string(markdown(text))
		if !strings.Contains(got, want) || strings.Contains(got, "<script") || strings.Contains(got, "<img") {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
	// What is nested too deeply is shown as it is. Measured: the slowest of the others, "[a](", takes 60 ms.
	for _, one := range []string{">", "- ", "[", "*a ", "**", "_", "`", "![", "<", "|a", "[a](", "~~", "&", "\\"} {
		text := strings.Repeat(one, mostMarkdown/len(one))
		if got := string(markdown(text)); len(got) > 40*len(text) {
			t.Errorf("%q repeated: %d bytes become %d", one, len(text), len(got))
		}
	}
}
