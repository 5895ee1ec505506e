package views

import (
	"bytes"
	"encoding/json"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/tracker"
)

// removalsKept is for how many snapshots a table remembers removed rows. A reader that is
// further behind gets everything again.
const removalsKept = 30

// A table holds rows as they are sent, each with the number of the snapshot that changed
// it last. So the number of a reader's last snapshot says which rows are new to it.
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

// made holds the values from which a row was made: equal values make equal rows.
type made struct {
	object, decision any       // pointers
	minute           time.Time // zero: the row does not change by time alone
	late             int32     // pods
	refusals         string
	hindered         tracker.Hindered
}

type removal struct {
	uid types.UID
	at  uint64
}

func newTable() *table { return &table{rows: map[types.UID]*row{}} }

// put makes the row of snapshot n, unless the values are those of the present row. If text
// returns nil, the present row stays.
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
	if next := text(); next != nil && !bytes.Equal(next, r.text) {
		r.text, r.changed = next, n
	}
}

// end removes the rows that are not in snapshot n.
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

// since returns the changes after the snapshot with the number last; 0: everything.
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
