package text

import "testing"

func TestJSON(t *testing.T) {
	for _, tt := range []struct{ content, want string }{
		{`"a\nb"`, "a\nb"}, {`{"n":12345678901234567890}`, "{\n  \"n\": 12345678901234567890\n}"}, {`1.50`, `1.50`}, {`{`, `{`},
	} {
		if got := JSON(tt.content); got != tt.want {
			t.Errorf("%s is %q, want %q", tt.content, got, tt.want)
		}
	}
}
