package cli

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stonelayer/stone/internal/suggest"
)

// flagError describes an invalid flag and suggests a similar one for an unknown flag. If there is
// none, the hint follows the reference to --help.
func flagError(c *cobra.Command, err error, hint string) error {
	var unknown *pflag.NotExistError
	var invalid *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown) && slices.Contains([]string{"model", "provider", "url"}, unknown.GetSpecifiedName()):
		name := unknown.GetSpecifiedName()
		return fmt.Errorf("%w: set STONE_%s, or %q in .stone/settings.json", err, strings.ToUpper(name), name)
	case errors.As(err, &unknown):
		meant := suggest.Closest(unknown.GetSpecifiedName(), func(yield func(string) bool) {
			more := true
			c.Flags().VisitAll(func(f *pflag.Flag) { more = more && (f.Hidden || yield(f.Name)) })
		})
		if meant != "" && unknown.GetSpecifiedShortnames() == "" {
			return fmt.Errorf("%w: did you mean --%s?", err, meant)
		}
		return fmt.Errorf("%w: see %s --help%s", err, c.CommandPath(), hint)
	case errors.As(err, &invalid) && errors.As(err, new(outOfRange)):
		return fmt.Errorf("--%s %s: %w", invalid.GetFlag().Name, invalid.GetValue(), invalid.Unwrap())
	case errors.As(err, &invalid) && errors.As(err, new(*strconv.NumError)):
		want := "a number"
		if invalid.GetFlag().Value.Type() == "bool" {
			want = "true or false"
		} else if invalid.GetFlag().Value.Type() != "float64" {
			want = "a whole number"
		}
		err = fmt.Errorf("--%s %q: want %s", invalid.GetFlag().Name, invalid.GetValue(), want)
	}
	if invalid != nil && invalid.GetFlag().Value.Type() == "duration" {
		err = fmt.Errorf("--%s %q: want a time with its unit, such as 10s, 5m or 1h30m", invalid.GetFlag().Name, invalid.GetValue())
	}
	return fmt.Errorf("%w: see %s --help", err, c.CommandPath())
}

// listen listens on the address that --address names.
func listen(address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("--address %s is in use: choose another, or stop the program that listens on it", address)
	}
	return l, err
}
