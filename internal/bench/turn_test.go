package bench

import (
	"fmt"
	"runtime"
	"testing"
)

// The texts in a run of an agent, the same for all libraries.
const (
	systemText = "You look into files."
	userText   = "What is in go.mod?"
	toolName   = "look"
	toolText   = "looks into a file"
	callInput  = `{"path":"go.mod"}`
	callResult = "module stone"
	finalText  = "It is the module stone."
)

// lookIn is the input of the tool, for libraries that make its schema of a Go type.
type lookIn struct {
	Path string `json:"path"`
}

// A script has the answers of model and tool in a run. They are made before the run, so
// that they cost next to nothing, and the same for all libraries.
type script struct {
	calls         int // of the tool in a run
	asked, called int // so far
}

// over counts a request to the model and reports whether its answer is the final text,
// and not a tool call.
func (s *script) over() bool {
	s.asked++
	return s.asked > s.calls
}

// look is the tool.
func (s *script) look() string {
	s.called++
	return callResult
}

// A turner makes an agent whose model is a script.
type turner struct {
	name string
	make func(*script) (func() (string, error), error)
}

// BenchmarkTurn is an agent that is asked once, calls a tool in each of its turns, and
// answers with a text. A long one shows whether a turn costs more at the end of a conversation; it is
// compared with the cheapest peer. The cost of the whole run is divided by the turns with a call, so
// that they share the cost of the last turn and of the run itself. It runs on one
// processor: the garbage collector's use of idle ones is no cost of a turn.
func BenchmarkTurn(b *testing.B) {
	for _, calls := range []int{1, 10, 100, 1_000} {
		for _, who := range append([]turner{{"stone", stoneTurns}}, peerTurners...) {
			if calls > 10 && who.name != "stone" && who.name != "langgraphgo" {
				continue
			}
			b.Run(fmt.Sprintf("%d/%s", calls, who.name), func(b *testing.B) {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
				s := &script{calls: calls}
				run, err := who.make(s)
				if err != nil {
					b.Fatal(err)
				}
				measure(b, calls, "turn", func() error {
					s.asked, s.called = 0, 0
					text, err := run()
					if err == nil && (text != finalText || s.called != calls || s.asked != calls+1) {
						err = fmt.Errorf("answer %q after %d questions and %d of %d calls", text, s.asked, s.called, calls)
					}
					return err
				})
			})
		}
	}
}
