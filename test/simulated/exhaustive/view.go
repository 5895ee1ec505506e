package exhaustive

import (
	"fmt"
	"reflect"

	"jobpolicy.dev/executor/tracker"
)

// A view is what a tracker knows, as far as a decision or what it learns later may depend on it. Two trackers with the
// same view and the same future do the same. What is left out: explanations and announcements, delays (none hinders a
// step here) and limits.
type view struct {
	marks                    tracker.Marks
	lifecycle                tracker.Lifecycle
	expects                  bool
	wasSuspended             bool
	open, creations, unknown int
	indexes                  uint8 // Of the creations in flight: bit i+1 is index i.
	listVersion              uint64
	pods                     [maxPods]podView
}

// podView is what a tracker knows of a pod.
type podView struct {
	known bool

	rv, missingAt                       uint64
	seen, ended, deleted, releasedFirst bool
	absent, absenceShown                bool
	absentUntil                         uint64
}

// field reads fields of the tracker that it does not export. A field that does not exist any more makes it panic: then
// view has to follow.
func field(v reflect.Value, names ...string) reflect.Value {
	for _, name := range names {
		for v.Kind() == reflect.Pointer {
			v = v.Elem()
		}
		if v = v.FieldByName(name); !v.IsValid() {
			panic("the tracker has no field " + name)
		}
	}
	return v
}

// fields are how many a struct of the tracker has, so that a new one is not overlooked. No Job here has options, so
// Job.nodes is always empty.
var fields = map[string]int{"Job": 16, "pods": 8, "record": 6, "calls": 4, "absence": 2, "version": 8, "Creation": 3}

func viewOf(j *tracker.Job) view {
	at := reflect.ValueOf(j).Elem()
	version, calls, pods := field(at, "version"), field(at, "calls"), field(at, "pods")
	v := view{
		marks:        tracker.Marks(field(version, "marks").Uint()),
		lifecycle:    tracker.Lifecycle(field(version, "lifecycle").Int()),
		expects:      !field(version, "expected").IsNil(),
		wasSuspended: field(version, "seenSuspended").Bool(),
		open:         int(field(calls, "open").Int()),
		listVersion:  field(pods, "listVersion").Uint(),
	}
	for i := field(calls, "creations").MapRange(); i.Next(); {
		v.creations++
		v.indexes |= 1 << uint(field(i.Key(), "index").Int()+1)
		if field(i.Key(), "unknown").Bool() {
			v.unknown++
		}
	}
	for i := field(pods, "records").MapRange(); i.Next(); {
		v.pods[numberIn(i.Key())].known = true
		v.pods[numberIn(i.Key())].read(i.Value().Elem())
	}
	for i := field(at, "absent").MapRange(); i.Next(); {
		p := &v.pods[numberIn(i.Key())]
		p.absent, p.absentUntil, p.absenceShown = true, field(i.Value(), "until").Uint(), field(i.Value(), "shown").Bool()
	}
	return v
}

func (p *podView) read(record reflect.Value) {
	p.rv, p.missingAt = field(record, "rv").Uint(), field(record, "missingAt").Uint()
	p.seen, p.ended = field(record, "seen").Bool(), field(record, "ended").Bool()
	p.deleted, p.releasedFirst = field(record, "Counted", "Deleted").Bool(), field(record, "Counted", "releasedFirst").Bool()
}

func numberIn(uid reflect.Value) int {
	s := uid.String()
	return int(s[len(s)-1] - '0')
}

// checkFields says which struct of the tracker has other fields than view was written for.
func checkFields() error {
	job := reflect.TypeFor[tracker.Job]()
	found := map[string]reflect.Type{"Job": job}
	for _, name := range []string{"pods", "calls", "version"} {
		f, _ := job.FieldByName(name)
		found[name] = f.Type
	}
	records, _ := found["pods"].FieldByName("records")
	creations, _ := found["calls"].FieldByName("creations")
	absent, _ := job.FieldByName("absent")
	found["record"], found["Creation"], found["absence"] = records.Type.Elem().Elem(), creations.Type.Key().Elem(), absent.Type.Elem()
	for name, t := range found {
		if t.NumField() != fields[name] {
			return fmt.Errorf("tracker's %s has %d fields, and view knows %d", name, t.NumField(), fields[name])
		}
	}
	return nil
}
