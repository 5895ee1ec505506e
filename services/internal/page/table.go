package page

import (
	"bytes"
	"encoding/json"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/state"
	"jobpolicy.dev/executor/tracker"
)

// removalsKept is for how many snapshots a table remembers what was removed. Who is further
// behind gets everything again.
const removalsKept = 30

// A table holds rows as they are sent, each with the number of the snapshot that changed
// it last. So what is new to a reader follows from the last snapshot that it has.
type table struct {
	rows    map[types.UID]*row
	removed []removal
}

type row struct {
	made    made
	text    json.RawMessage
	changed uint64
	seen    uint64
}

// made is what a row was made of: the same values make the same row.
type made struct {
	object, decision any       // pointers
	minute           time.Time // zero: the row does not change by time alone
	late             int32     // pods
	refusal          state.Refusal
	hindered         tracker.Hindered
}

type removal struct {
	uid types.UID
	at  uint64
}

func newTable() *table { return &table{rows: map[types.UID]*row{}} }

// put makes the row of snapshot n, unless it is made of the same.
func (t *table) put(n uint64, uid types.UID, of made, text func() json.RawMessage) {
	r := t.rows[uid]
	if r == nil {
		r = &row{}
		t.rows[uid] = r
	}
	r.seen = n
	if r.text != nil && r.made == of {
		return
	}
	r.made = of
	if next := text(); !bytes.Equal(next, r.text) {
		r.text, r.changed = next, n
	}
}

// end removes the rows that snapshot n has not.
func (t *table) end(n uint64) {
	for uid, r := range t.rows {
		if r.seen != n {
			delete(t.rows, uid)
			t.removed = append(t.removed, removal{uid, n})
		}
	}
	for len(t.removed) > 0 && t.removed[0].at+removalsKept <= n {
		t.removed = t.removed[1:]
	}
}

// since is what is new after a snapshot; 0: everything.
func (t *table) since(last uint64) (changed []json.RawMessage, removed []types.UID) {
	for _, r := range t.rows {
		if r.changed > last {
			changed = append(changed, r.text)
		}
	}
	for _, r := range t.removed {
		if last > 0 && r.at > last {
			removed = append(removed, r.uid)
		}
	}
	return changed, removed
}
