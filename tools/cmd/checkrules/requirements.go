package main

import (
	"fmt"
	"slices"
)

// checkRequirements compares the go.mod of every module with its row. checkLinked checks what a module links in the
// end, and golangci-lint what its source imports.
func checkRequirements(ws *workspace, rules []moduleRule) ([]violation, error) {
	var found []violation
	for _, m := range ws.modules {
		i := slices.IndexFunc(rules, func(r moduleRule) bool { return r.dir == m.dir })
		if i < 0 {
			text := "the module has no row in the rule table: add one, and say in .golangci.yml what it may import"
			found = append(found, violation{m.goMod(), 1, "module-row", text})
			continue
		}
		found = append(found, requirementsAgainst(m, rules[i])...)
	}
	return found, nil
}

// requirementsAgainst compares the go.mod requirements, direct and indirect, with what the module must never name.
func requirementsAgainst(m module, rule moduleRule) []violation {
	var found []violation
	for _, req := range m.mod.Require {
		for _, no := range rule.never {
			if !within(req.Mod.Path, no.path) {
				continue
			}
			text := fmt.Sprintf("%s must not require %s: %s", m.dir, req.Mod.Path, no.instead)
			found = append(found, violation{m.goMod(), req.Syntax.Start.Line, "require", text})
		}
	}
	return found
}
