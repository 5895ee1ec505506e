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

// profileTime is how long a CPU profile lasts. A scenario that ends earlier is
// followed by idle time, which costs a profile nothing.
const profileTime = 15 * time.Second

// profilePath is where every program serves its CPU profile.
var profilePath = fmt.Sprintf("/debug/pprof/profile?seconds=%d", int(profileTime.Seconds()))

// profiled plays, and takes a CPU profile of each of the contender's programs
// from the beginning, if a directory is named. Figures of a heat that is profiled
// hold the cost of that.
func (h *heat) profiled(ctx context.Context, play func(context.Context, *heat) error) error {
	if h.profileDir == "" {
		return play(ctx, h)
	}
	programs := slices.Sorted(maps.Keys(h.crew.profiles))
	errs := make([]error, len(programs))
	var taken sync.WaitGroup
	for i, program := range programs {
		taken.Go(func() { errs[i] = h.takeProfile(program) })
	}
	err := play(ctx, h)
	taken.Wait()
	return errors.Join(append(errs, err)...)
}

func (h *heat) takeProfile(program string) error {
	profile, err := fetch(h.crew.profiles[program])
	if err != nil {
		return fmt.Errorf("profile: %w", err)
	}
	if err := os.MkdirAll(h.profileDir, 0o755); err != nil {
		return err
	}
	name := fmt.Sprintf("%s-%s-%s.pprof", h.scenario.Name, strings.ReplaceAll(h.contender.name, " ", "-"), program)
	return os.WriteFile(filepath.Join(h.profileDir, name), profile, 0o644)
}
