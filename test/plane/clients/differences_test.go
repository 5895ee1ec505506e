package clients

import "jobpolicy.dev/test/plane/clients/history"

// differences are those that histories may show. Each is also in docs/differences.md, or says why it is no
// difference of behaviour.
var differences = []history.Difference{}
