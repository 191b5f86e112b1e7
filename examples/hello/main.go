// Command hello is the first pipeline of the README. It writes a poem in capital letters; each line is a separate lane.
package main

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
)

var (
	Poem = dag.NewType[[]string]("poem")
	Line = dag.NewType[string]("line")
	Loud = dag.NewType[string]("loud")
	Text = dag.NewType[string]("text")
)

func Pipeline() stone.Ashlar {
	return stone.Seq("shout",
		stone.Map("each-line", Poem, Line, stone.Func("upper", Line, Loud, upper), stone.AllLanes()),
		stone.Reduce(stone.Func("join", dag.Lanes(Loud), Text, join)),
	)
}

func upper(_ context.Context, line string) (string, error) { return strings.ToUpper(line), nil }

func join(_ context.Context, lines []string) (string, error) { return strings.Join(lines, "\n"), nil }

func main() {
	poem := Poem.With([]string{"every step", "is an ashlar"})
	text, err := stone.Produce(context.Background(), Pipeline(), Text, stone.Config{Input: dag.Of(poem)})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(text)
}
