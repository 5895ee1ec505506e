package conformance

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// rest waits until both sides are at rest and alike, and returns their views.
func (r *run) rest(ctx context.Context, when string, finish bool) ([2]view, error) {
	begun, patience := time.Now(), patience
	if r.c.inRestarts() {
		patience = patienceInRestarts
	}
	for {
		for _, s := range r.sides() {
			if err := r.kubelet(s).tend(ctx, r.c.Manual, r.hold); err != nil {
				return [2]view{}, fmt.Errorf("%s: %s: %w", s.name, when, err)
			}
		}
		views := [2]view{r.builtin.view(r.namespace), r.ours.view(r.namespace)}
		still := r.still(begun, views) && (!finish || views[0].facts.finished && views[1].facts.finished)
		late := time.Since(begun) > patience
		builtin, ours := r.comparable(views)
		if still && slices.Equal(builtin, ours) {
			r.shown[when] = builtin
			return views, nil
		}
		if still || late {
			known, same := alikeButFor(builtin, ours)
			if same {
				for _, name := range known {
					r.known[name] = true
				}
				r.shown[when] = builtin
				return views, nil
			}
		}
		if late {
			return views, &parting{when: when, builtin: builtin, ours: ours}
		}
		select {
		case <-ctx.Done():
			return views, ctx.Err()
		case <-time.After(pollPeriod):
		}
	}
}

// still reports whether nothing has happened for long enough.
func (r *run) still(begun time.Time, views [2]view) bool {
	quiet := min(time.Since(begun), time.Since(views[0].changed), time.Since(views[1].changed))
	if views[0].facts.behind || views[1].facts.behind {
		return false
	}
	restless := views[0].facts.restless || views[1].facts.restless
	unstarted := !r.c.Manual && (views[0].facts.unstarted || views[1].facts.unstarted)
	if (restless || unstarted) && quiet < settleRestless {
		return false
	}
	if !r.c.inRestarts() {
		return quiet >= r.settle
	}
	for _, s := range r.sides() {
		since, up := s.outage.since()
		if !up {
			return false
		}
		quiet = min(quiet, time.Since(since))
	}
	return quiet >= max(r.settle, settleInRestarts)
}

var failures = regexp.MustCompile(`^(active=.* failed=).*|^(completedIndexes=.* failedIndexes=).*`)

// withoutFailures hides how many pods have failed of a Job that succeeds. Those
// that are deleted because it does are not counted as failed, unless the
// controller, either of them, is killed between deleting and recording it.
func withoutFailures(lines []string) []string {
	if !contains(lines, ": SuccessCriteriaMet=True ") {
		return lines
	}
	for i, line := range lines {
		lines[i] = failures.ReplaceAllString(line, "$1$2?")
	}
	return lines
}

// comparable are the lines of two views, without what is a matter of chance:
// events that a killed controller had not sent yet or that are too many for the
// recorder, and the last things that happened to a Job that is being deleted.
func (r *run) comparable(views [2]view) (builtin, ours []string) {
	var lines [2][]string
	for i, v := range views {
		lines[i] = slices.Clone(v.lines)
		if r.loose {
			lines[i] = slices.DeleteFunc(lines[i], func(line string) bool {
				untracked := strings.HasPrefix(line, "pod ") && !strings.Contains(line, " tracked")
				return strings.HasPrefix(line, "pods created") || strings.Contains(line, " gone") || r.orphaning && untracked
			})
		}
		if r.c.inRestarts() {
			lines[i] = withoutFailures(lines[i])
		}
		if !r.loose && !r.orphaning && !r.c.inRestarts() && max(views[0].told, views[1].told) < maxEvents {
			lines[i] = append(lines[i], slices.DeleteFunc(slices.Clone(v.events), func(line string) bool {
				return r.deleting && !strings.Contains(line, " Successful")
			})...)
		}
	}
	return lines[0], lines[1]
}

// lineDiff shows both views in one list: "-" built-in only, "+" ours only.
func lineDiff(builtin, ours []string) string {
	var out []string
	for _, line := range builtin {
		mark := "  "
		if !slices.Contains(ours, line) {
			mark = "- "
		}
		out = append(out, mark+line)
	}
	for _, line := range ours {
		if !slices.Contains(builtin, line) {
			out = append(out, "+ "+line)
		}
	}
	return "    " + strings.Join(out, "\n    ")
}
