//go:build js && wasm

// Command jobpolicy-playground is the engine of the page in web/: WebAssembly, which
// tools/playground.sh builds into a static folder. The page calls jobpolicyOpen with a
// state and jobpolicyMoment with a number, and gets JSON.
package main

import (
	"encoding/json"
	"syscall/js"

	"jobpolicy.dev/services/internal/playground"
)

func main() {
	var p playground.Playground
	js.Global().Set("jobpolicyOpen", js.FuncOf(func(_ js.Value, args []js.Value) any {
		var s playground.State
		if err := json.Unmarshal([]byte(args[0].String()), &s); err != nil {
			return text(playground.Answer{Problem: &playground.Problem{Field: "link", Text: "expected a state of this page: " + err.Error()}})
		}
		return text(p.Open(s))
	}))
	js.Global().Set("jobpolicyMoment", js.FuncOf(func(_ js.Value, args []js.Value) any {
		return text(p.Moment(args[0].Int()))
	}))
	js.Global().Call("jobpolicyReady")
	select {} // the page calls from now on
}

func text(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // none of these types fails
	}
	return string(data)
}
