package controllers_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"strings"
)

// This file checks that functions are readable: short ones can be harder to read than long ones.

const (
	// A function is dense if it has at least denseFrom decisions, and at least denseShare decisions
	// per line.
	denseFrom  = 8
	denseShare = 0.6
)

// hasShape reports whether the rules of this file apply to a file.
func (s source) hasShape() bool {
	if s.isForTests() || s.isGenerated() {
		return false
	}
	return strings.HasPrefix(s.path, "controllers/") || strings.HasPrefix(s.path, "gate/") ||
		strings.HasPrefix(s.path, "agent/") || strings.HasPrefix(s.path, "cmd/")
}

func (s source) functions() []*ast.FuncDecl {
	var found []*ast.FuncDecl
	for _, declaration := range s.file.Decls {
		if function, ok := declaration.(*ast.FuncDecl); ok && function.Body != nil {
			found = append(found, function)
		}
	}
	return found
}

func (s source) line(n ast.Node) int { return s.files.Position(n.Pos()).Line }

// checkMixed finds conditions that are hard to parse: && inside ||.
func checkMixed(s source) []string {
	if !s.hasShape() {
		return nil
	}
	var faults []string
	ast.Inspect(s.file, func(n ast.Node) bool {
		or, ok := n.(*ast.BinaryExpr)
		if !ok || or.Op != token.LOR {
			return true
		}
		for _, side := range []ast.Expr{or.X, or.Y} {
			if and, ok := side.(*ast.BinaryExpr); ok && and.Op == token.LAND {
				faults = append(faults, fmt.Sprintf("line %d mixes && and ||: give one part a name", s.line(or)))
			}
		}
		return true
	})
	return faults
}

// checkDense finds functions with a decision in nearly every line.
func checkDense(s source) []string {
	if !s.hasShape() {
		return nil
	}
	var faults []string
	for _, function := range s.functions() {
		lines := s.files.Position(function.End()).Line - s.line(function) + 1
		if n := decisions(function.Body); n >= denseFrom && float64(n) >= denseShare*float64(lines) {
			faults = append(faults, fmt.Sprintf("line %d: %s has %d decisions in %d lines: use more lines, or name the steps",
				s.line(function), function.Name.Name, n, lines))
		}
	}
	return faults
}

func decisions(body *ast.BlockStmt) int {
	count := 0
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt:
			count++
		case *ast.CaseClause:
			if n.List != nil {
				count++
			}
		case *ast.BinaryExpr:
			if n.Op == token.LAND || n.Op == token.LOR {
				count++
			}
		}
		return true
	})
	return count
}

// checkAnswers finds functions of a kind that return a value and also write to the plan: a query
// must not change the actions.
func checkAnswers(s source) []string {
	if _, _, isKind := s.kind(); !isKind || !s.hasShape() {
		return nil
	}
	var faults []string
	for _, function := range s.functions() {
		if function.Type.Results != nil && takesPlan(function.Type.Params) && assignsToPlan(function) {
			faults = append(faults, fmt.Sprintf("line %d: %s returns a value and changes its plan: change the plan in a rule",
				s.line(function), function.Name.Name))
		}
	}
	return faults
}

func takesPlan(parameters *ast.FieldList) bool { return planParameter(parameters) != "" }

// planParameter returns the name of a parameter of type *plan or *Plan, or "" if there is none.
func planParameter(parameters *ast.FieldList) string {
	for _, parameter := range parameters.List {
		star, ok := parameter.Type.(*ast.StarExpr)
		if !ok || len(parameter.Names) == 0 {
			continue
		}
		if name, ok := star.X.(*ast.Ident); ok && strings.EqualFold(name.Name, "plan") {
			return parameter.Names[0].Name
		}
	}
	return ""
}

// planWrites are the methods of engine.Plan that change it.
var planWrites = map[string]bool{"Do": true, "Then": true, "LookAgain": true, "WaitFor": true, "Last": true, "Stop": true}

func assignsToPlan(function *ast.FuncDecl) bool {
	plan, found := planParameter(function.Type.Params), false
	isPlan := func(e ast.Expr) bool {
		selector, ok := e.(*ast.SelectorExpr)
		if !ok {
			return false
		}
		name, ok := selector.X.(*ast.Ident)
		return ok && name.Name == plan
	}
	ast.Inspect(function.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, left := range n.Lhs {
				found = found || isPlan(left)
			}
		case *ast.CallExpr:
			if isPlan(n.Fun) {
				found = found || planWrites[n.Fun.(*ast.SelectorExpr).Sel.Name]
			}
		}
		return true
	})
	return found
}
