package statefulsingleton_test

// Moves of a kubelet with a pod. Programs crash and exit on their own. The kubelet may
// learn of it later, and the API server later still.
var kubelets = []move{
	{"the kubelet starts pod POD", aPod, view.canStart, view.start, helps},
	{"the kubelet updates the grant in pod POD, and the program starts", aPod, view.canOpen, view.open, helps},
	{"the program of pod POD crashes", aPod, view.canCrash, view.crash, mishap},
	{"the kubelet restarts the program of pod POD", aPod, view.canRestart, view.open, helps},
	{"the program of pod POD ends permanently", aPod, func(v view) bool { return v.pod().program == working }, view.end, mishap},
	{"the kubelet has stopped pod POD", aPod, view.canStop, view.end, helps},
	{"the kubelet reports the status of pod POD", aPod, view.canReport, view.report, helps},
	{"the kubelet removes pod POD", aPod, view.canFinish, func(v view) { v.s.remove(v.m, v.i) }, helps},
	{"the kubelet rejects pod POD", aPod, view.canRefuseNew, func(v view) { v.refuse(); v.end() }, mishap},
	{"the restarted kubelet rejects pod POD, whose containers keep running", aPod, view.canRefuse, view.refuse, mishap},
	{"pod garbage collection fails pod POD", aPod, view.canCollect, view.collect, mishap},
}

func (v view) kubeletRuns() bool { return v.node().machine != off }
func (v view) connected() bool   { return v.node().machine == works }

// canStart reports whether the kubelet can start the pod. This includes a start after a
// reboot, which removes the containers.
func (v view) canStart() bool {
	p := v.pod()
	return v.connected() && p.made && p.program == absent && !p.dying && p.phase == living
}

func (v view) start() {
	v.pod().program = working
	if v.pod().gated {
		v.pod().program = waits
	}
}

// canOpen reports whether the gate can start the program. The file may lag behind the
// annotation by any time. Once the program has run, the file exists, and a restarted
// container reads it.
func (v view) canOpen() bool {
	p := v.pod()
	opens := p.grant == ownGrant || p.grant == foreignGrant && !v.m.obeys(gateAsksForUID)
	if p.leased {
		opens = opens || v.canRenew()
	}
	return v.connected() && p.program == waits && opens
}

func (v view) open() {
	v.pod().program = working
	v.renew()
}

func (v view) canCrash() bool { return v.m.has(crashes) && v.pod().program == working }

// crash crashes the program. The kubelet does not restart it in a pod that has ended.
func (v view) crash() {
	if v.pod().program = crashed; v.pod().phase == ended {
		v.end()
	}
}

// canRestart reports whether the kubelet can restart the program in place, with or without
// a connection to the API server. Its gate reads the same grant again.
func (v view) canRestart() bool {
	renews := !v.pod().leased || v.connected() && v.canRenew() || !v.m.obeys(renewsFirst)
	return v.pod().program == crashed && v.kubeletRuns() && renews
}

func (v view) canStop() bool {
	p := v.pod()
	return v.connected() && p.program != finished && *p != pod{} && (p.dying || p.phase != living || !p.made)
}

func (v view) end() {
	if v.pod().program = finished; !v.pod().made {
		v.s.free(v.i)
	}
}

// reported returns the phase and statuses that a report sets. For a refused pod, container
// statuses are reported only when it is deleted.
func (v view) reported() (phase, shown) {
	p := v.pod()
	switch {
	case p.program == absent, p.refused() && p.program == finished && !p.dying:
		return p.phase, p.shown
	case p.program == finished && p.phase == living:
		return ended, terminated
	case p.program == finished && p.phase == collected:
		return confirmed, terminated
	case p.program == finished, p.program == crashed:
		return p.phase, terminated
	}
	return p.phase, up
}

func (v view) canReport() bool {
	phase, shown := v.reported()
	return v.connected() && v.pod().made && (phase != v.pod().phase || shown != v.pod().shown)
}

func (v view) report() {
	v.pod().phase, v.pod().shown = v.reported()
	v.s.touch(v.i)
}

func (v view) canFinish() bool {
	p := v.pod()
	return v.connected() && p.made && p.dying && !p.kept && p.program == finished && p.phase != living
}

func (v view) canRefuseNew() bool { return v.m.has(refusals) && v.canStart() }

func (v view) canRefuse() bool {
	p := v.pod()
	alive := p.program == waits || p.program == working || p.program == crashed
	return v.m.has(refusals) && v.connected() && p.made && p.phase == living && alive
}

// refuse leaves a pod without any container status.
func (v view) refuse() {
	v.pod().phase, v.pod().shown = ended, nothing
	v.s.touch(v.i)
	if v.pod().program == crashed {
		v.end()
	}
}

// canCollect reports whether pod garbage collection can act. It acts if the Node is missing
// or out of service, and does not ask the kubelet.
func (v view) canCollect() bool {
	return v.pod().made && v.pod().phase == living && v.node().word != registered
}

func (v view) collect() {
	v.pod().phase = collected
	v.s.touch(v.i)
}

// Moves of nodes; one node is affected at a time. A stopped kubelet is equivalent to one
// that is cut off and does nothing. The administrator declares a machine off only if it is.
var machines = []move{
	{"node NODE is disconnected", aNode, view.canCut, func(v view) { v.node().machine = cutOff }, mishap},
	{"node NODE is reconnected", aNode, func(v view) bool { return v.node().machine == cutOff }, func(v view) { v.node().machine = works }, helps},
	{"the machine of node NODE is switched off", aNode, func(v view) bool { return v.canFail() && v.node().machine != off }, view.powerOff, mishap},
	{"the machine of node NODE is switched on", aNode, func(v view) bool { return v.node().machine == off }, view.powerOn, helps},
	{"Node NODE is deleted", aNode, view.canUnregister, func(v view) { v.node().word = unregistered }, mishap},
	{"Node NODE registers", aNode, view.canRegister, func(v view) { v.node().word = registered }, helps},
	{"node NODE gets the out-of-service taint", aNode, view.canFence, func(v view) { v.node().word = outOfService }, mishap},
	{"node NODE loses the out-of-service taint", aNode, view.canUnfence, func(v view) { v.node().word = registered }, helps},
}

func (v view) canCut() bool {
	return v.canFail() && v.connected() && v.node().word != outOfService
}

func (v view) canUnregister() bool { return v.canFail() && v.node().word == registered }
func (v view) canRegister() bool   { return v.connected() && v.node().word == unregistered }
func (v view) canFence() bool      { return v.node().machine == off && v.node().word != outOfService }
func (v view) canUnfence() bool    { return v.connected() && v.node().word == outOfService }

func (v view) canFail() bool {
	return v.m.has(outages) && v.s.nodes[1-v.nodeAt] == node{}
}

func (v view) powerOff() {
	v.node().machine = off
	for i := range v.m.pods {
		p := &v.s.pods[i]
		switch on := v.of(i).nodeAt == v.nodeAt; {
		case on && !p.made:
			v.s.free(int8(i))
		case on && p.program != finished:
			p.program = absent
		}
	}
}

// powerOn switches the machine on. The administrator removes the taint before that or
// shortly after.
func (v view) powerOn() {
	v.node().machine = works
	if v.node().word == outOfService && !v.m.has(lateTaint) {
		v.node().word = registered
	}
}
