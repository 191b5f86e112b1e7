// Package bounds limits the size of texts that callers store with runs, such as labels. Lists of runs and questions repeat these
// texts, so a long text would slow down every list. Journals refuse texts that are too long. Code that receives such texts from a
// caller checks them first.
//
// The package also has Cut, which shortens texts for messages, and Least, which compares limits. All sizes are in bytes.
package bounds

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"
)

// The limits.
const (
	Labels     = 16  // number of labels that a caller can give to a run, as for metadata in OpenAI's protocols
	LabelName  = 64  // as for metadata in OpenAI's protocols
	LabelValue = 512 // as for metadata in OpenAI's protocols
	Own        = 4   // number of labels that a program can add to the caller's, such as the tenant
	Name       = 512 // name of an ashlar, a pipeline, an intent or a request
	ID         = 512 // ID of a run; servers accept only shorter IDs, because the IDs of inner runs are longer
	Question   = 1 << 20
	Response   = 1 << 20
	Asked      = 10_000 // open questions of a run, and of a tenant that wants to start another run
)

// Least returns the stricter of two limits; nil means unlimited.
func Least[N cmp.Ordered](a, b *N) *N {
	if a == nil || b != nil && *b < *a {
		return b
	}
	return a
}

// An Error reports a text that is too large. It names the limit and the size.
type Error struct{ text string }

func (e *Error) Error() string { return e.text }

func refuse(format string, args ...any) error { return &Error{fmt.Sprintf(format, args...)} }

// Cut shortens a text that is longer than n bytes to at most n bytes, without splitting a character, and appends "…".
func Cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// CheckLabels checks the number and size of the labels that a caller gives to a run.
func CheckLabels(labels map[string]string) error { return checkLabels(labels, Labels) }

func checkLabels(labels map[string]string, most int) error {
	if n := len(labels); n > most {
		return refuse("%d labels: want at most %d", n, most)
	}
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		if n := len(name); n > LabelName {
			return refuse("the label %.40q… has a name of %d bytes: want at most %d", name, n, LabelName)
		}
		if n := len(labels[name]); n > LabelValue {
			return refuse("the label %q has a value of %d bytes: want at most %d", name, n, LabelValue)
		}
	}
	return nil
}

// CheckName checks the length of a name or an ID. What describes what has the name, such as "the intent".
func CheckName(what, name string) error {
	if n := len(name); n > Name {
		return refuse("%s %.40q… has %d bytes: want at most %d", what, name, n, Name)
	}
	return nil
}

// CheckID checks the length of a run ID.
func CheckID(id string) error {
	if n := len(id); n > ID {
		return refuse("the run id %.40q… has %d bytes: want at most %d", id, n, ID)
	}
	return nil
}

// CheckRun checks the texts of a caller that a journal stores with a run.
func CheckRun(pipeline string, labels map[string]string) error {
	if err := CheckName("the pipeline", pipeline); err != nil {
		return err
	}
	return checkLabels(labels, Labels+Own)
}

// CheckQuestion checks the size of a question, including its choices, schema and call.
func CheckQuestion(path string, question any) error {
	text, err := json.Marshal(question)
	if err != nil {
		return fmt.Errorf("question at %s: %w", path, err)
	}
	if n := len(text); n > Question {
		return refuse("the question at %.200s has %d bytes, with its choices, schema and call: want at most %d", path, n, Question)
	}
	return nil
}

// CheckAsked checks the number of open questions. Whose says what they belong to, such as "the run".
func CheckAsked(whose string, n int) error {
	if n >= Asked {
		return refuse("%s has %d open questions: want fewer than %d: answer some of them, or cancel their runs", whose, n, Asked)
	}
	return nil
}

// CheckResponse checks the size of a response to a question.
func CheckResponse(response string) error {
	if n := len(response); n > Response {
		return refuse("the response has %d bytes: want at most %d", n, Response)
	}
	return nil
}

const (
	maxLabel    = 80      // maximum size of a label in bytes
	maxLabelled = 4 << 10 // maximum size in bytes of an item that is searched for a label
)

// labels are the fields that usually contain the name of an item, in order of preference.
var labels = [...]string{"name", "title", "path", "id", "key"}

// Label returns the name of a fan-out's item, given as JSON: the item itself if it is a string or a number, or a field that
// usually contains a name. It is empty for other items.
func Label(item []byte) (label string) {
	if len(item) > maxLabelled {
		return ""
	}
	var value any
	d := json.NewDecoder(bytes.NewReader(item))
	d.UseNumber()
	if d.Decode(&value) != nil {
		return ""
	}
	switch v := value.(type) {
	case string:
		label = v
	case json.Number:
		label = v.String()
	case map[string]any:
		for _, field := range labels {
			if label, _ = v[field].(string); label != "" {
				break
			}
		}
	}
	return Cut(label, maxLabel)
}
