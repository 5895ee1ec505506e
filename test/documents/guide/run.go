package guide

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// Shell is where commands run.
type Shell struct {
	// Dir is the working directory.
	Dir string
	// Env is the whole environment, as KEY=VALUE; nil means that of this process.
	Env []string
}

// Run runs a step and compares what it prints, on both outputs, with what the
// page says. The error names what went wrong and shows the output. When the
// command or ctx ends, the processes that it left behind are killed.
func (s Shell) Run(ctx context.Context, step Step) (output string, err error) {
	file, err := os.CreateTemp("", "guide-*.log")
	if err != nil {
		return "", err
	}
	defer os.Remove(file.Name())
	defer file.Close()

	// A file and not a pipe: a process that the command leaves behind must not
	// hold the end of the step up.
	runErr := s.bash(ctx, step.Command, file)
	data, err := os.ReadFile(file.Name())
	if err != nil {
		return "", err
	}
	output = string(data)
	if runErr != nil {
		return output, fmt.Errorf("%w; it printed:\n%s", runErr, output)
	}
	if step.Prints == "" {
		return output, nil
	}
	return output, Match(step.Prints, output)
}

func (s Shell) bash(ctx context.Context, script string, output *os.File) error {
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", script)
	cmd.Dir, cmd.Env = s.Dir, s.Env
	cmd.Stdout, cmd.Stderr = output, output
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	killGroup := func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Cancel = killGroup
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Start(); err != nil {
		return err
	}
	err := cmd.Wait()
	_ = killGroup() // An error says that nothing was left.
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return err
	}
	return nil
}
