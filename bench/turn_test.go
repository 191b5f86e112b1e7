package bench

import (
	"fmt"
	"runtime"
	"testing"
)

// What is said in a run of an agent, by everybody.
const (
	systemText = "You look into files."
	userText   = "What is in go.mod?"
	toolName   = "look"
	toolText   = "looks into a file"
	callInput  = `{"path":"go.mod"}`
	callResult = "module stone"
	finalText  = "It is the module stone."
)

// lookIn is the input of the tool, for those that make its schema out of a Go type.
type lookIn struct {
	Path string `json:"path"`
}

// A script is what model and tool of a run do. Their answers are made before
// the run, so that they cost next to nothing, and the same for everybody.
type script struct {
	calls         int // of the tool in a run
	asked, called int // so far
}

// over counts a question to the model and reports whether the final text is its
// answer, or else a call of the tool.
func (s *script) over() bool {
	s.asked++
	return s.asked > s.calls
}

// look is the tool.
func (s *script) look() string {
	s.called++
	return callResult
}

// BenchmarkTurn is an agent that is asked once, calls a tool in each of its
// turns, and answers with a text. What the whole run costs is divided by the
// turns with a call, so that the last turn and what a run costs beside its turns
// are shared among them. There is one processor: what others do for the garbage
// collector because they are idle is no cost of a turn.
func BenchmarkTurn(b *testing.B) {
	for _, calls := range []int{1, 10} {
		for _, who := range []struct {
			name string
			make func(*script) (func() (string, error), error)
		}{
			{"stone", stoneTurns},
			{"langchaingo", langchainTurns},
			{"langgraphgo", langgraphTurns},
			{"genkit", genkitTurns},
			{"eino-react", einoTurns},
			{"eino-adk", einoAgentTurns},
			{"adk", adkTurns},
			{"trpc-agent-go", trpcTurns},
		} {
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
