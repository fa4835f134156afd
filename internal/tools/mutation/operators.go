package main

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"strings"
)

// swaps lists what binary operators become. A comparison has its boundary moved and its
// sense negated; the others are exchanged with their opposite.
var swaps = map[token.Token][]token.Token{
	token.LSS: {token.LEQ, token.GEQ}, token.LEQ: {token.LSS, token.GTR},
	token.GTR: {token.GEQ, token.LEQ}, token.GEQ: {token.GTR, token.LSS},
	token.EQL: {token.NEQ}, token.NEQ: {token.EQL},
	token.LAND: {token.LOR}, token.LOR: {token.LAND},
	token.ADD: {token.SUB}, token.SUB: {token.ADD},
	token.MUL: {token.QUO}, token.QUO: {token.MUL}, token.REM: {token.MUL},
	token.AND: {token.OR}, token.OR: {token.AND}, token.XOR: {token.AND}, token.AND_NOT: {token.AND},
	token.SHL: {token.SHR}, token.SHR: {token.SHL},
}

// assignSwaps is the same for assignments.
var assignSwaps = map[token.Token]token.Token{
	token.ADD_ASSIGN: token.SUB_ASSIGN, token.SUB_ASSIGN: token.ADD_ASSIGN,
	token.MUL_ASSIGN: token.QUO_ASSIGN, token.QUO_ASSIGN: token.MUL_ASSIGN, token.REM_ASSIGN: token.MUL_ASSIGN,
	token.AND_ASSIGN: token.OR_ASSIGN, token.OR_ASSIGN: token.AND_ASSIGN, token.XOR_ASSIGN: token.AND_ASSIGN,
	token.AND_NOT_ASSIGN: token.AND_ASSIGN,
	token.SHL_ASSIGN:     token.SHR_ASSIGN, token.SHR_ASSIGN: token.SHL_ASSIGN,
}

// A finder collects the mutants of one file.
type finder struct {
	*source
	info  *types.Info
	pkg   *types.Package
	fn    string
	sites []*site
}

// find returns the file's sites, outer ones before those within.
func (f *finder) find() []*site {
	for _, d := range f.syntax.Decls {
		f.fn = ""
		if fn, ok := d.(*ast.FuncDecl); ok {
			f.fn = funcName(fn)
			if fn.Body != nil {
				f.walk(fn.Body, f.info.Defs[fn.Name].Type().(*types.Signature))
			}
			continue
		}
		f.walk(d, nil)
	}
	return f.sites
}

// walk visits a node; sig is the signature of the function around it.
func (f *finder) walk(root ast.Node, sig *types.Signature) {
	ast.Inspect(root, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			if n == root {
				return true
			}
			f.walk(n, f.info.Types[n].Type.(*types.Signature))
			return false
		case *ast.GenDecl:
			return n.Tok == token.VAR
		case *ast.BlockStmt:
			f.statements(n.List, sig)
		case *ast.CaseClause:
			f.statements(n.Body, sig)
		case *ast.CommClause:
			f.statements(n.Body, sig)
		case *ast.IfStmt:
			f.condition(n.Cond)
		case *ast.ForStmt:
			if n.Cond != nil {
				f.condition(n.Cond)
			}
		case *ast.CallExpr:
			if f.isCapacity(n) {
				// How much room a slice has at first changes no result.
				f.walk(n.Args[1], sig)
				return false
			}
		case ast.Expr:
			f.expression(n)
		}
		return true
	})
}

// isCapacity reports whether a call is make with a capacity.
func (f *finder) isCapacity(call *ast.CallExpr) bool {
	id, ok := call.Fun.(*ast.Ident)
	return ok && id.Name == "make" && len(call.Args) == 3
}

func (f *finder) expression(e ast.Expr) {
	if f.info.Types[e].Value != nil && !f.isBool(e) {
		return
	}
	switch e := e.(type) {
	case *ast.BinaryExpr:
		if f.info.Types[e].Value != nil {
			return
		}
		for _, op := range swaps[e.Op] {
			if e.Op == token.ADD && !f.isNumber(e) {
				continue
			}
			f.replace(e, f.text(e.X)+" "+op.String()+" "+f.text(e.Y))
		}
	case *ast.UnaryExpr:
		if e.Op == token.NOT || e.Op == token.SUB || e.Op == token.XOR {
			f.replace(e, f.text(e.X))
		}
	case *ast.Ident:
		if e.Name != "true" && e.Name != "false" || f.info.Uses[e] != types.Universe.Lookup(e.Name) {
			return
		}
		f.replace(e, map[string]string{"true": "false", "false": "true"}[e.Name])
	}
}

// condition negates a condition that has no operator which is changed anyway.
func (f *finder) condition(e ast.Expr) {
	switch c := ast.Unparen(e).(type) {
	case *ast.BinaryExpr:
		return
	case *ast.UnaryExpr:
		if c.Op == token.NOT {
			return
		}
	}
	if f.info.Types[e].Value == nil {
		f.replace(e, "!("+f.text(e)+")")
	}
}

// replace adds a mutant of an expression.
func (f *finder) replace(e ast.Expr, code string) {
	typ, ok := f.spell(f.info.Types[e].Type)
	if !ok || f.recovers(e) {
		return
	}
	f.add(e, typ, f.text(e)+" → "+code, code)
}

// recovers reports whether recover is called in a node: in a function of its
// own, as mutants of expressions are, it would recover nothing.
func (f *finder) recovers(n ast.Node) (found bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		found = found || ok && f.info.Uses[id] == types.Universe.Lookup("recover")
		return true
	})
	return found
}

func (f *finder) statements(list []ast.Stmt, sig *types.Signature) {
	for _, s := range list {
		switch s := s.(type) {
		case *ast.ExprStmt:
			if call, ok := s.X.(*ast.CallExpr); !ok || !f.isKept(call) {
				f.remove(s)
			}
		case *ast.DeferStmt:
			if !f.isKept(s.Call) {
				f.remove(s)
			}
		case *ast.GoStmt, *ast.SendStmt:
			f.remove(s)
		case *ast.IncDecStmt:
			f.remove(s)
			code := f.text(s.X) + map[token.Token]string{token.INC: "--", token.DEC: "++"}[s.Tok]
			f.add(s, "", f.text(s)+" → "+code, code)
		case *ast.AssignStmt:
			f.assignment(s)
		case *ast.BranchStmt:
			if s.Tok == token.BREAK || s.Tok == token.CONTINUE {
				f.remove(s)
			}
		case *ast.ReturnStmt:
			f.result(s, sig)
		}
	}
}

// isKept reports whether a call may not be removed: after panic the compiler expects no
// code, and a missing Lock is for the race detector to find.
func (f *finder) isKept(call *ast.CallExpr) bool {
	switch fun := call.Fun.(type) {
	case *ast.Ident:
		return fun.Name == "panic"
	case *ast.SelectorExpr:
		switch fun.Sel.Name {
		case "Lock", "Unlock", "RLock", "RUnlock":
			return true
		}
	}
	return false
}

func (f *finder) remove(s ast.Stmt) {
	f.add(s, "", "remove: "+f.text(s), "")
}

func (f *finder) assignment(s *ast.AssignStmt) {
	if s.Tok == token.DEFINE {
		return
	}
	blank := true
	for _, l := range s.Lhs {
		id, ok := l.(*ast.Ident)
		blank = blank && ok && id.Name == "_"
	}
	if blank {
		return
	}
	f.remove(s)
	if op, ok := assignSwaps[s.Tok]; ok && f.isNumber(s.Lhs[0]) {
		code := f.text(s.Lhs[0]) + " " + op.String() + " " + f.text(s.Rhs[0])
		f.add(s, "", f.text(s)+" → "+code, code)
	}
}

// result replaces each result of a return by another value: a bool by its opposite,
// others by their zero value.
func (f *finder) result(s *ast.ReturnStmt, sig *types.Signature) {
	if len(s.Results) == 0 {
		if sig != nil && sig.Results().Len() == 0 {
			f.remove(s)
		}
		return
	}
	if sig == nil || len(s.Results) != sig.Results().Len() {
		return // what a call of several results returns
	}
	for i, r := range s.Results {
		other, ok := f.other(r, sig.Results().At(i).Type())
		if !ok {
			continue
		}
		parts := make([]string, len(s.Results))
		for j, r := range s.Results {
			parts[j] = f.text(r)
		}
		parts[i] = other
		code := "return " + strings.Join(parts, ", ")
		f.add(s, "", f.text(s)+" → "+code, code)
	}
}

// other returns another value for a result, if it has one that no other mutant has.
func (f *finder) other(e ast.Expr, t types.Type) (string, bool) {
	tv := f.info.Types[e]
	if tv.IsNil() {
		return "", false
	}
	switch u := t.Underlying().(type) {
	case *types.Basic:
		switch {
		case u.Info()&types.IsBoolean != 0:
			switch ast.Unparen(e).(type) {
			case *ast.BinaryExpr, *ast.UnaryExpr:
				return "", false
			}
			return "!(" + f.text(e) + ")", tv.Value == nil
		case u.Info()&types.IsNumeric != 0:
			if tv.Value != nil && constant.Sign(tv.Value) == 0 {
				return "1", true
			}
			return "0", true
		case u.Info()&types.IsString != 0:
			return `""`, tv.Value == nil || constant.StringVal(tv.Value) != ""
		}
	case *types.Pointer, *types.Slice, *types.Map, *types.Chan, *types.Signature, *types.Interface:
		if _, generic := t.(*types.TypeParam); generic {
			return "", false
		}
		return "nil", true
	case *types.Struct, *types.Array:
		if lit, ok := e.(*ast.CompositeLit); ok && len(lit.Elts) == 0 {
			return "", false
		}
		typ, ok := f.spell(t)
		return "*new(" + typ + ")", ok
	}
	return "", false
}

func (f *finder) isNumber(e ast.Expr) bool {
	b, ok := f.info.Types[e].Type.Underlying().(*types.Basic)
	return ok && b.Info()&types.IsNumeric != 0
}

func (f *finder) isBool(e ast.Expr) bool {
	b, ok := f.info.Types[e].Type.Underlying().(*types.Basic)
	return ok && b.Info()&types.IsBoolean != 0
}

// spell returns a type as the file writes it, if its imports allow that.
func (f *finder) spell(t types.Type) (string, bool) {
	if t == nil {
		return "", false
	}
	if b, ok := t.(*types.Basic); ok && b.Info()&types.IsUntyped != 0 {
		t = types.Default(t)
	}
	ok := true
	s := types.TypeString(t, func(p *types.Package) string {
		if p == f.pkg {
			return ""
		}
		for _, imp := range f.syntax.Imports {
			if strings.Trim(imp.Path.Value, `"`) != p.Path() {
				continue
			}
			if imp.Name != nil {
				return imp.Name.Name
			}
			return p.Name()
		}
		ok = false
		return p.Name()
	})
	return s, ok
}

// add appends a mutant to the site that a node is.
func (f *finder) add(n ast.Node, typ, change, code string) {
	var s *site
	for _, have := range f.sites {
		if have.from == n.Pos() && have.to == n.End() && (have.typ == "") == (typ == "") {
			s = have
		}
	}
	if s == nil {
		s = &site{from: n.Pos(), to: n.End(), typ: typ}
		f.sites = append(f.sites, s)
	}
	s.alts = append(s.alts, alt{&mutant{
		file: f.name, line: f.fset.Position(n.Pos()).Line, fn: f.fn, change: change,
	}, code})
}
