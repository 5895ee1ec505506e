// Package impure breaks every purity rule at least once.
package impure

import (
	_ "context"      // want `import of context: a decision neither waits nor is cancelled`
	_ "crypto/rand"  // want `import of crypto/rand: derive the value from the request`
	_ "database/sql" // want `import of database/sql: carry the fact in the request`
	_ "expvar"       // want `import of expvar: put what happened into the explanation`
	_ "flag"         // want `import of flag: carry the setting in the request`
	_ "hash/maphash" // want `import of hash/maphash: its seed differs in each process`
	_ "io/fs"        // want `import of io/fs: carry the fact in the request`
	_ "io/ioutil"    // want `import of io/ioutil: carry the fact in the request`
	_ "log"          // want `import of log: put what happened into the explanation`
	_ "log/slog"     // want `import of log/slog: put what happened into the explanation`
	_ "math/rand"    // want `import of math/rand: derive the value from the request`
	_ "math/rand/v2" // want `import of math/rand/v2: derive the value from the request`
	_ "net"          // want `import of net: carry the fact in the request`
	_ "net/http"     // want `import of net/http: carry the fact in the request`
	_ "os"           // want `import of os: carry the fact in the request`
	_ "os/exec"      // want `import of os/exec: carry the fact in the request`
	_ "plugin"       // want `import of plugin: write the policy as a rule in the ordered list`
	_ "runtime"      // want `import of runtime: decide from the request alone`
	_ "sync"         // want `import of sync: take values and return values`
	_ "sync/atomic"  // want `import of sync/atomic: take values and return values`
	_ "syscall"      // want `import of syscall: carry the fact in the request`
	_ "unsafe"       // want `import of unsafe: use safe Go`

	_ "google.golang.org/protobuf/encoding/protojson" // want `import of .*/protojson: its spacing varies between builds`
	_ "google.golang.org/protobuf/encoding/prototext" // want `import of .*/prototext: its spacing varies between builds`
)
