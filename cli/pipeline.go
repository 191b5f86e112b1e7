package cli

import (
	"errors"
	"flag"
	"fmt"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/internal/panics"
)

// pipeline returns the ashlar for Config.Pipeline, which can have one of several types.
func pipeline(from any, args []string) (p stone.Ashlar, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("Pipeline panicked at %s: %v", panics.Place(), r)
		}
	}()
	switch from := from.(type) {
	case stone.Ashlar:
		return from, noArgs(args)
	case func() stone.Ashlar:
		if from != nil {
			if err := noArgs(args); err != nil {
				return p, err
			}
			return from(), nil
		}
	case func() (stone.Ashlar, error):
		if from != nil {
			if err := noArgs(args); err != nil {
				return p, err
			}
			p, err := from()
			return p, refusal(err)
		}
	case func([]string) (stone.Ashlar, error):
		if from != nil {
			p, err := from(args)
			return p, refusal(err)
		}
	}
	kind := fmt.Sprintf("of type %T", from)
	switch from.(type) {
	case nil:
		kind = "nil"
	case func() stone.Ashlar, func() (stone.Ashlar, error), func([]string) (stone.Ashlar, error):
		kind = "a nil function"
	}
	return p, fmt.Errorf("Pipeline is %s: want a stone.Ashlar, a func() stone.Ashlar, a func() (stone.Ashlar, error) or a func([]string) (stone.Ashlar, error)", kind)
}

func noArgs(args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("unexpected argument %q after --: the pipeline takes none", args[0])
	}
	return nil
}

// refusal returns the error for arguments that a pipeline's function rejected. Its text is shown unchanged, because it may be a
// usage message of several lines. For flag.ErrHelp, nothing is shown, because the flag set has already printed the help.
func refusal(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, flag.ErrHelp) {
		return &exitError{code: Usage}
	}
	return &exitError{code: Usage, err: err, lines: true}
}
