package main

import "fmt"

// dashboard is one file. Its panels stand beside each other in their order, as long as they
// fit into a line.
type dashboard struct {
	name, title string
	// kind is that whose objects can be chosen by namespace and name; none is the operator.
	kind   string
	panels []panel
}

// panel shows one thing.
type panel struct {
	title string
	// about says how to read it.
	about   string
	shape   shape
	queries []query
	// unit is Grafana's name of it, such as s or ops; empty is a plain number.
	unit string
	// bad is whether any number but 0 wants a person.
	bad bool
}

// query is one of PromQL, and what its lines are called.
type query struct{ expr, legend string }

// shape is how a panel looks.
type shape struct {
	kind          string // Grafana's name of it
	width, height int    // of a grid with 24 columns
	options       fields
	custom        fields // of each field
	instant       bool   // only what is now
}

// fields are those of a JSON object.
type fields map[string]any

var (
	number = shape{kind: "stat", width: 6, height: 4, instant: true, options: fields{
		"colorMode": "background", "graphMode": "none", "reduceOptions": fields{"calcs": []string{"lastNotNull"}},
	}}
	lines = shape{kind: "timeseries", width: 12, height: 8, options: legend, custom: fields{"fillOpacity": 10, "showPoints": "never"}}
	areas = shape{kind: "timeseries", width: 12, height: 8, options: legend, custom: fields{
		"fillOpacity": 40, "showPoints": "never", "stacking": fields{"mode": "normal"},
	}}
	table = shape{kind: "table", width: 24, height: 8, instant: true, options: fields{"showHeader": true}}
	bands = shape{kind: "state-timeline", width: 24, height: 8, options: fields{"mergeValues": true, "showValue": "never"}}
)

var legend = fields{
	"legend":  fields{"displayMode": "list", "placement": "bottom"},
	"tooltip": fields{"mode": "multi", "sort": "desc"},
}

// columns is how wide Grafana's grid is.
const columns = 24

// tag is what all dashboards have, by which they name each other.
const tag = "stateful-operator"

var source = fields{"type": "prometheus", "uid": "${datasource}"}

// uid is the dashboard's name in links; Grafana takes 40 letters.
func (d dashboard) uid() string { return tag + "-" + d.name }

func (d dashboard) model() fields {
	return fields{
		"uid": d.uid(), "title": d.title, "tags": []string{tag}, "schemaVersion": 39, "editable": false,
		"time": fields{"from": "now-6h", "to": "now"}, "refresh": "1m",
		"links":      []fields{{"type": "dashboards", "tags": []string{tag}, "title": "Stateful operator", "asDropdown": true, "keepTime": true}},
		"templating": fields{"list": d.variables()},
		"panels":     d.placed(),
	}
}

func (d dashboard) variables() []fields {
	all := []fields{{"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus"}}
	if d.kind == "" {
		return all
	}
	condition := fmt.Sprintf("stateful_operator_condition{kind=%q", d.kind)
	return append(all,
		choice("namespace", condition+"}"),
		choice("name", condition+`, namespace=~"$namespace"}`))
}

// choice is a variable with the values of a label.
func choice(label, of string) fields {
	return fields{
		"name": label, "type": "query", "datasource": source, "query": fmt.Sprintf("label_values(%s, %s)", of, label),
		"multi": true, "includeAll": true, "allValue": ".*", "current": fields{"text": []string{"All"}, "value": []string{"$__all"}},
		"refresh": 2, // when the time range changes
		"sort":    1,
	}
}

// placed are the panels, each in its place.
func (d dashboard) placed() []fields {
	var all []fields
	x, y, tallest := 0, 0, 0
	for i, p := range d.panels {
		if x+p.shape.width > columns {
			x, y, tallest = 0, y+tallest, 0
		}
		model := p.model()
		model["id"] = i + 1
		model["gridPos"] = fields{"x": x, "y": y, "w": p.shape.width, "h": p.shape.height}
		all = append(all, model)
		x, tallest = x+p.shape.width, max(tallest, p.shape.height)
	}
	return all
}

func (p panel) model() fields {
	defaults := fields{"unit": p.unit, "min": 0, "custom": p.shape.custom}
	model := fields{
		"type": p.shape.kind, "title": p.title, "description": p.about, "datasource": source,
		"options": p.shape.options, "targets": p.targets(),
		"fieldConfig": fields{"defaults": defaults, "overrides": []fields{}},
	}
	switch p.shape.kind {
	case number.kind:
		defaults["thresholds"] = p.thresholds()
	case bands.kind:
		defaults["mappings"] = []fields{{"type": "value", "options": fields{
			"0": fields{"text": "no", "color": "red"}, "1": fields{"text": "yes", "color": "green"},
		}}}
	case table.kind:
		model["transformations"] = []fields{{"id": "organize", "options": fields{"excludeByName": fields{"Time": true, "Value": true}}}}
		model["fieldConfig"] = fields{"defaults": fields{}, "overrides": []fields{toRunbooks}}
	}
	return model
}

// toRunbooks makes the name of an alert a link to its page.
var toRunbooks = fields{
	"matcher": fields{"id": "byName", "options": "alertname"},
	"properties": []fields{{"id": "links", "value": []fields{{
		"title": "Runbook", "targetBlank": true,
		"url": "https://github.com/stateful-operator/stateful-operator/blob/main/docs/runbooks/${__value.raw}.md",
	}}}},
}

func (p panel) thresholds() fields {
	if !p.bad {
		return fields{"mode": "absolute", "steps": []fields{{"color": "blue", "value": nil}}}
	}
	return fields{"mode": "absolute", "steps": []fields{{"color": "green", "value": nil}, {"color": "red", "value": 1}}}
}

func (p panel) targets() []fields {
	var all []fields
	for i, q := range p.queries {
		target := fields{
			"refId": string(rune('A' + i)), "datasource": source, "expr": q.expr, "legendFormat": q.legend,
			"instant": p.shape.instant, "range": !p.shape.instant, "format": "time_series",
		}
		if p.shape.kind == table.kind {
			target["format"] = "table"
		}
		all = append(all, target)
	}
	return all
}
