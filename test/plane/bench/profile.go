package bench

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// profileTime is how long a CPU profile lasts. If a scenario ends earlier,
// the rest of the profile is idle time, which adds no sample.
const profileTime = 15 * time.Second

// profilePath is the path at which every program serves its CPU profile.
var profilePath = fmt.Sprintf("/debug/pprof/profile?seconds=%d", int(profileTime.Seconds()))

// profiled runs the scenario. If a directory is named, it also takes a CPU profile
// of each of the contender's programs from the beginning; the figures then include the
// cost of profiling.
func (r *run) profiled(ctx context.Context, play func(context.Context, *run) error) error {
	if r.profileDir == "" {
		return play(ctx, r)
	}
	programs := slices.Sorted(maps.Keys(r.processes.profiles))
	errs := make([]error, len(programs))
	var taken sync.WaitGroup
	for i, program := range programs {
		taken.Go(func() { errs[i] = r.takeProfile(program) })
	}
	err := play(ctx, r)
	taken.Wait()
	return errors.Join(append(errs, err)...)
}

func (r *run) takeProfile(program string) error {
	profile, err := fetch(r.processes.profiles[program])
	if err != nil {
		return fmt.Errorf("profile: %w", err)
	}
	if err := os.MkdirAll(r.profileDir, 0o755); err != nil {
		return err
	}
	name := fmt.Sprintf("%s-%s-%s.pprof", r.scenario.Name, strings.ReplaceAll(r.contender.name, " ", "-"), program)
	return os.WriteFile(filepath.Join(r.profileDir, name), profile, 0o644)
}
