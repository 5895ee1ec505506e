package world

import (
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A crossing counts Jobs by a feature of theirs, by what failed in their worlds, and by how they
// ended.
type crossing struct {
	// cells counts, by feature and by column, the Jobs that completed, that failed, and the others.
	// A column is a class of faults, or one kind of fault.
	cells map[string]map[string]*[3]int
}

// A crossed Job is what one Job adds to the crossing.
type crossedJob struct {
	Features []string `json:"features"`
	Outcome  string   `json:"outcome"`
}

// nothing is the column of worlds in which nothing failed.
const nothing = "nothing"

// faultClasses are the columns of the short table: requests that fail, by their answer;
// watches and lists; the engine; webhooks; executors' processes; clocks; a second controller.
var faultClasses = []struct {
	name  string
	kinds []string
}{
	{nothing, nil},
	{"lost/late", kindNames(lostRequest, lostAnswer, timedOutDone, lateRequest, lateAnswer)},
	{"refused", kindNames(conflict, forbidden, invalid, throttled, guarded)},
	{"error", kindNames(serverError, unavailable, timedOut)},
	{"watch", append(kindNames(watchLag, watchBreak, duplicate, staleList, expired), "break watches", "compact")},
	{"engine", kindNames(engineAway, engineHangs, engineBusy, engineSlow, engineBroken, engineNarrow, engineGarbled, engineEarlier)},
	{"webhook", kindNames(putBack, hangs, altering)},
	{"process", []string{"kill", "freeze", "hang for it", "delete the lease"}},
	{"clock", []string{"set the clock"}},
	{"second", []string{"switch the built-in controller on"}},
}

func kindNames(kinds ...faultKind) (names []string) {
	for _, k := range kinds {
		names = append(names, string(k))
	}
	return names
}

// crossedFeatures are the rows.
var crossedFeatures = func() []string {
	var names []string
	specFeatures(&batchv1.JobSpec{}, func(name string, _ bool) { names = append(names, name) })
	return append(names, "of CronJob, Allow", "of CronJob, Forbid", "of CronJob, Replace", "of CronJob, over weeks")
}()

// crossed are a Job's features; none if the Job is not in the plan.
func (p *plan) crossed(job *batchv1.Job) (features []string) {
	add := func(name string, has bool) {
		if has && slices.Contains(crossedFeatures, name) {
			features = append(features, name)
		}
	}
	for _, j := range p.jobs {
		if j.namespace == job.Namespace && j.name == job.Name {
			specFeatures(&j.spec, add)
		}
	}
	ref := metav1.GetControllerOfNoCopy(job)
	for _, c := range p.crons {
		if ref != nil && ref.Kind == "CronJob" && c.name == ref.Name {
			specFeatures(&c.spec.JobTemplate.Spec, add)
			add("of CronJob, "+string(c.spec.ConcurrencyPolicy), true)
			add("of CronJob, over weeks", p.overWeeks())
		}
	}
	return features
}

// add counts a world's Jobs; happened are its faults and steps.
func (x *crossing) add(jobs []crossedJob, happened map[string]bool) {
	columns := []string{}
	for _, class := range faultClasses {
		for _, kind := range class.kinds {
			if happened[kind] {
				columns = append(columns, kind, class.name)
			}
		}
	}
	slices.Sort(columns)
	if columns = slices.Compact(columns); len(columns) == 0 {
		columns = []string{nothing}
	}
	for _, job := range jobs {
		for _, feature := range job.Features {
			for _, column := range columns {
				x.cell(feature, column)[outcomeIndex(job.Outcome)]++
			}
		}
	}
}

func outcomeIndex(outcome string) int {
	switch {
	case strings.HasPrefix(outcome, string(batchv1.JobComplete)):
		return 0
	case strings.HasPrefix(outcome, string(batchv1.JobFailed)):
		return 1
	}
	return 2
}

func (x *crossing) cell(feature, column string) *[3]int {
	if x.cells == nil {
		x.cells = map[string]map[string]*[3]int{}
	}
	if x.cells[feature] == nil {
		x.cells[feature] = map[string]*[3]int{}
	}
	if x.cells[feature][column] == nil {
		x.cells[feature][column] = &[3]int{}
	}
	return x.cells[feature][column]
}

// columnsATable is how many columns fit beside each other.
const columnsATable = 10

// table is the crossing as text, by classes of faults; if each is set, by kinds of faults.
func (x *crossing) table(each bool) string {
	var columns []string
	for _, class := range faultClasses {
		if each && class.kinds != nil {
			columns = append(columns, class.kinds...)
		} else {
			columns = append(columns, class.name)
		}
	}
	var out strings.Builder
	out.WriteString("Jobs that completed/failed/neither, by their features and by what failed in their worlds\n")
	for part := range slices.Chunk(columns, columnsATable) {
		x.write(&out, part)
	}
	out.WriteString(x.missing(columns))
	return out.String()
}

func (x *crossing) write(out *strings.Builder, columns []string) {
	for i, c := range columns {
		if len(c) > 9 { // It gets a line of its own.
			fmt.Fprintf(out, "  (%c) %s\n", 'a'+i, c)
		}
	}
	fmt.Fprintf(out, "%-27s", "")
	for i, c := range columns {
		if len(c) > 9 {
			c = fmt.Sprintf("(%c)", 'a'+i)
		}
		fmt.Fprintf(out, " %9s", c)
	}
	out.WriteString("\n")
	for _, feature := range crossedFeatures {
		fmt.Fprintf(out, "%-27s", feature)
		for _, c := range columns {
			n := x.cell(feature, c)
			text := "NONE"
			if *n != [3]int{} {
				text = brief(n[0]) + "/" + brief(n[1]) + "/" + brief(n[2])
			}
			fmt.Fprintf(out, " %9s", text)
		}
		out.WriteString("\n")
	}
}

// brief is a number in three characters, or in four from a million on.
func brief(n int) string {
	switch {
	case n == 0:
		return "."
	case n < 1000:
		return itoa(n)
	case n < 1_000_000:
		return itoa(n/1000) + "k"
	}
	return itoa(n/1_000_000) + "M"
}

// mostMissing is how many empty cells are named.
const mostMissing = 12

// missing names the pairs of a feature and a column that no Job had.
func (x *crossing) missing(columns []string) string {
	var empty []string
	for _, feature := range crossedFeatures {
		for _, c := range columns {
			if *x.cell(feature, c) == [3]int{} {
				empty = append(empty, feature+" × "+c)
			}
		}
	}
	all := len(crossedFeatures) * len(columns)
	if len(empty) == 0 {
		return fmt.Sprintf("All %d pairs were covered.\n", all)
	}
	var out strings.Builder
	fmt.Fprintf(&out, "NOT COVERED, %d of %d pairs:\n", len(empty), all)
	for some := range slices.Chunk(empty[:min(len(empty), mostMissing)], 3) {
		fmt.Fprintf(&out, "  %s\n", strings.Join(some, "; "))
	}
	if len(empty) > mostMissing {
		fmt.Fprintf(&out, "  and %d more\n", len(empty)-mostMissing)
	}
	return out.String()
}
