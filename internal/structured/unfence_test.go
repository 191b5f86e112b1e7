package structured

import "testing"

func TestUnfence(t *testing.T) {
	for answer, want := range map[string]string{
		"":                              "",
		" {} \n":                        "{}",
		"```json\n{}\n```":              "{}",
		"```\n{}\n```\n":                "{}",
		"```{}```":                      "{}",
		"Here it is:\n```\n{}\n```\nOk": "{}",
		"{\"a\": \"```\nb\n```\"}":      "{\"a\": \"```\nb\n```\"}",
		"```\n{}":                       "```\n{}",
		"```\na\n```\n```\nb\n```":      "```\na\n```\n```\nb\n```",
	} {
		if got := Unfence(answer); got != want {
			t.Errorf("%q is %q, want %q", answer, got, want)
		}
	}
}
