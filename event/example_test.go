package event_test

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/event"
)

// A watcher prints the text that a capability streams, and the retraction of that text.
func Example() {
	note := dag.NewType[string]("note")
	attempts := 0
	talk := stone.Func0("talk", note, func(ctx context.Context) (string, error) {
		voice := event.At(ctx).Speak("parrot")
		voice.Say(event.Text, "polly ")
		voice.Say(event.Text, "wants")
		if attempts++; attempts == 1 {
			return "", fmt.Errorf("the parrot flew away")
		}
		voice.End()
		return "polly wants", nil
	}, stone.Retry{Attempts: 2})

	watch := event.Func(event.LevelDelta, func(e event.Event) {
		switch d := e.Data.(type) {
		case event.Delta:
			fmt.Printf("%d %s says %q\n", e.Seq, d.Source, d.Text)
		case event.Retracted:
			fmt.Printf("%d %s is void: %s\n", e.Seq, e.Path, d.Reason)
		default:
			if e.Level() >= slog.LevelInfo {
				fmt.Println(e.Seq, e.Type(), e.Path)
			}
		}
	})
	if _, err := stone.Run(context.Background(), talk, stone.Config{Watch: watch}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 1 run-start talk
	// 3 parrot says "polly "
	// 4 parrot says "wants"
	// 5 talk is void: the parrot flew away
	// 6 attempt-failed talk
	// 7 parrot says "polly "
	// 8 parrot says "wants"
	// 9 parrot says ""
	// 11 run-end talk
}
