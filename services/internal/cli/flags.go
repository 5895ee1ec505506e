package cli

import (
	"errors"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// FileOnly is for commands that take a file by flag and no argument.
func FileOnly(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Usagef("expected no argument, got %q; a file is given by -f", args[0])
	}
	return nil
}

// Value is a flag whose text the function read parses.
func Value[T any](to *T, read func(string) (T, error)) pflag.Value {
	return flagFunc(func(text string) error {
		x, err := read(text)
		if err == nil {
			*to = x
		}
		return err
	})
}

// List is a flag that may be repeated. The function read parses each text.
func List[T any](to *[]T, read func(string) (T, error)) pflag.Value {
	return flagFunc(func(text string) error {
		x, err := read(text)
		if err == nil {
			*to = append(*to, x)
		}
		return err
	})
}

// flagFunc reads the text of a flag.
type flagFunc func(string) error

// Set is for pflag.
func (f flagFunc) Set(text string) error { return f(text) }

// String is the default that the help shows: none.
func (f flagFunc) String() string { return "" }

// Type is the word for the value in the help.
func (f flagFunc) Type() string { return "value" }

// ParseDuration reads a duration above 0.
func ParseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, errors.New("expected a duration above 0, such as 30s or 1h30m")
	}
	return d, nil
}
