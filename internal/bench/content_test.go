package bench

import (
	"encoding/json"
	"strings"
	"testing"
)

// content is the data that the steps of a benchmark pass on. A step calls next, so that
// every node differs from the previous one.
type content[T any] interface {
	next() T
	count() int
}

// small is a flat type.
type small struct {
	N    int    `json:"n"`
	Name string `json:"name"`
}

func (s small) next() small { s.N++; return s }
func (s small) count() int  { return s.N }

// kilo is a flat type of about 1 KB.
type kilo struct {
	N        int    `json:"n"`
	Title    string `json:"title"`
	Reporter string `json:"reporter"`
	Open     bool   `json:"open"`
	Seen     string `json:"seen"`
	Expected string `json:"expected"`
	Steps    string `json:"steps"`
}

func (k kilo) next() kilo { k.N++; return k }
func (k kilo) count() int { return k.N }

// nested also has about 1 KB, but is not flat: a step reads it from its JSON.
type nested struct {
	N        int       `json:"n"`
	Title    string    `json:"title"`
	Tags     []string  `json:"tags"`
	Sections []section `json:"sections"`
}

type section struct {
	Heading string `json:"heading"`
	Text    string `json:"text"`
	Lines   int    `json:"lines"`
}

func (d nested) next() nested { d.N++; return d }
func (d nested) count() int   { return d.N }

const title = "crash on start with an empty configuration"

var (
	seen     = strings.Repeat("the program ends before it has read it. ", 5)
	expected = strings.Repeat("it says which file it wants and where. ", 6)
	repeat   = strings.Repeat("start it in an empty folder, \"twice\".\n", 8)

	aSmall = small{Name: "step"}
	aKilo  = kilo{Title: title, Reporter: "the nightly job", Open: true, Seen: seen + seen[:len(seen)*3/5], Expected: expected, Steps: repeat}
	aNest  = nested{
		Title: title,
		Tags:  []string{"bug", "start", "configuration"},
		Sections: []section{
			{Heading: "what happens", Text: seen, Lines: 5},
			{Heading: "what should happen", Text: expected, Lines: 6},
			{Heading: "how to see it", Text: repeat, Lines: 8},
		},
	}
)

func TestContentsAreOneKilobyte(t *testing.T) {
	for _, v := range []any{aKilo, aNest} {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if len(b) < 1000 || len(b) > 1048 {
			t.Errorf("a %T is %d bytes long, want 1,024 within 24", v, len(b))
		}
	}
}
