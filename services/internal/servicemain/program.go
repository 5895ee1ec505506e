// Package servicemain has what the main functions of the services share: flags, exit codes, signals.
//
// Weighed against cobra with component-base's NamedFlagSets: the engine would link eleven more
// packages for its flags' groups.
package servicemain

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"

	"github.com/spf13/pflag"

	"jobpolicy.dev/services/internal/buildinfo"
)

// Exit codes.
const (
	ExitOK     = 0
	ExitFailed = 1
	// ExitUsage says that the command line is wrong; nothing was started.
	ExitUsage = 2
)

// Options are the command line of a program.
type Options interface {
	// AddFlags defines the flags, in groups.
	AddFlags(*Set)
	// Validate reports everything that is wrong, by flag.
	Validate() error
}

// A Program is one of the services.
type Program struct {
	Name string
	// Summary stands above the flags in the help.
	Summary string
	Options Options
	// Headroom is by how many more bytes the heap may grow before it is collected.
	Headroom int
	// Run serves until the context is done, and then drains. Nil means success.
	Run func(context.Context, *slog.Logger) error
}

// Main runs the program and ends the process. SIGTERM and SIGINT ask it to drain;
// a second signal ends it at once.
func (p *Program) Main() {
	spare := headroom(p.Headroom)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	context.AfterFunc(ctx, stop)
	code := p.Start(ctx, os.Args[1:], os.Stdout, os.Stderr)
	runtime.KeepAlive(spare)
	os.Exit(code)
}

// Start runs the program and returns its exit code.
func (p *Program) Start(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := New(p.Name, p.Summary)
	p.Options.AddFlags(flags)
	var logs LogOptions
	logs.AddFlags(flags.Group("Logging"))
	version := addVersion(flags.Group("Other"))

	err := flags.Parse(args)
	if errors.Is(err, ErrHelp) {
		_ = flags.Usage(stdout) // there is nowhere to report an error
		return ExitOK
	}
	if err == nil && *version {
		fmt.Fprintln(stdout, p.Name, buildinfo.Summary())
		return ExitOK
	}
	if err == nil {
		err = errors.Join(p.Options.Validate(), logs.Validate())
	}
	if err != nil {
		p.complain(stderr, err)
		return ExitUsage
	}
	log := logs.Logger(stderr)
	if err := p.Run(ctx, log); err != nil {
		log.Error("service failed", "error", err)
		return ExitFailed
	}
	return ExitOK
}

func addVersion(fs *pflag.FlagSet) *bool {
	return fs.Bool("version", false, "Print the version, the commit and the Go version, and exit.")
}

// complain prints one line for each thing that is wrong.
func (p *Program) complain(w io.Writer, err error) {
	for line := range strings.Lines(err.Error()) {
		fmt.Fprintf(w, "%s: %s\n", p.Name, strings.TrimSuffix(line, "\n"))
	}
	fmt.Fprintf(w, "See %s --help.\n", p.Name)
}
