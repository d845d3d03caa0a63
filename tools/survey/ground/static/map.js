// The survey's map: points by dive and cluster over their tracks, in metres (L.CRS.Simple), on a canvas.
(() => {
  const data = JSON.parse(document.getElementById("map-data").textContent);
  const DEGREE_M = 6371000 * Math.PI / 180;
  const map = globalThis.stillwatchMap = L.map("map", {
    crs: L.CRS.Simple, preferCanvas: true, attributionControl: false, scrollWheelZoom: false,
    minZoom: -14, maxZoom: 7, zoomSnap: 0.25, zoomDelta: 0.5, wheelPxPerZoomLevel: 120,
  });
  map.on("click focus", () => map.scrollWheelZoom.enable());
  map.on("mouseout blur", () => map.scrollWheelZoom.disable());
  L.control.scale({ imperial: false, maxWidth: 140 }).addTo(map);

  const at = (i) => [data.y[i], data.x[i]];
  const bounds = L.latLngBounds(data.x.map((_, i) => at(i)));
  const whole = () => map.fitBounds(bounds.pad(0.05), { maxZoom: 5, animate: false });

  // Until somebody moves it, the map shows the whole survey, whatever becomes of the window.
  let isMoved = false;
  for (const kind of ["pointerdown", "wheel", "keydown"]) {
    map.getContainer().addEventListener(kind, () => { isMoved = true; }, { passive: true });
  }
  map.on("resize", () => { if (!isMoved) whole(); });

  const line = getComputedStyle(document.body).getPropertyValue("--track").trim() || "#8895a3";
  const tracks = data.dives.map(() => L.layerGroup().addTo(map));
  for (const [first, last] of data.tracks) {
    const places = [];
    for (let i = first; i < last; i += 1) places.push(at(i));
    L.polyline(places, { color: line, weight: 1, interactive: false }).addTo(tracks[data.dive[first]]);
  }
  const layers = new Map();
  const key = (dive, cluster) => `${dive} ${cluster}`;
  const named = new Set();
  data.x.forEach((_, i) => {
    const [dive, cluster] = [data.dive[i], data.cluster[i]];
    if (!layers.has(key(dive, cluster))) layers.set(key(dive, cluster), L.layerGroup().addTo(map));
    const point = L.circleMarker(at(i), {
      radius: 4, stroke: false, fillOpacity: 0.9, fillColor: data.colours[cluster],
    });
    point.bindTooltip(() => said(i), { direction: "top" });
    if (data.item[i] >= 0) point.bindPopup(() => linked(i));
    point.addTo(layers.get(key(dive, cluster)));
    if (!named.has(dive)) {
      named.add(dive);
      const name = document.createElement("span");
      name.textContent = data.dives[dive];
      L.tooltip({ permanent: true, direction: "right", className: "dive", offset: [6, 0] })
        .setLatLng(at(i)).setContent(name).addTo(tracks[dive]);
    }
  });

  function said(i) {
    const text = document.createElement("span");
    text.textContent = `${data.name[i]}: cluster ${data.cluster[i]}`;
    return text;
  }
  function linked(i) {
    const link = document.createElement("a");
    link.href = `#item-${data.item[i]}`;
    link.textContent = `${data.name[i]}: cluster ${data.cluster[i]}`;
    return link;
  }

  // What is shown: a box for each dive and each cluster.
  const hidden = { dive: new Set(), cluster: new Set() };
  function refresh() {
    for (const [name, layer] of layers) {
      const [dive, cluster] = name.split(" ").map(Number);
      const isOn = !hidden.dive.has(dive) && !hidden.cluster.has(cluster);
      if (isOn !== map.hasLayer(layer)) (isOn ? layer.addTo(map) : layer.remove());
    }
    tracks.forEach((track, dive) => {
      const isOn = !hidden.dive.has(dive);
      if (isOn !== map.hasLayer(track)) (isOn ? track.addTo(map) : track.remove());
    });
  }
  const shown = document.getElementById("shown");
  function boxes(kind, ids, nameOf, colourOf) {
    const row = document.createElement("div");
    row.className = "shown";
    for (const id of ids) {
      const label = document.createElement("label");
      const box = Object.assign(document.createElement("input"), { type: "checkbox", checked: true });
      box.onchange = () => {
        hidden[kind][box.checked ? "delete" : "add"](id);
        refresh();
      };
      label.append(box, " ");
      if (colourOf) {
        const mark = document.createElement("span");
        mark.className = "key";
        mark.style.background = colourOf(id);
        label.append(mark);
      }
      label.append(nameOf(id));
      row.append(label);
    }
    shown.append(row);
  }
  const used = [...new Set(data.cluster)].sort((a, b) => a - b);
  boxes("cluster", used, (k) => `${k}`, (k) => data.colours[k]);
  if (named.size > 1) boxes("dive", [...named].sort((a, b) => a - b), (j) => data.dives[j]);

  const Home = L.Control.extend({
    options: { position: "topleft" },
    onAdd() {
      const bar = L.DomUtil.create("div", "leaflet-bar");
      const button = L.DomUtil.create("a", "", bar);
      Object.assign(button, { href: "#map", title: "the whole survey", textContent: "⤢" });
      button.setAttribute("role", "button");
      L.DomEvent.on(button, "click", (event) => {
        L.DomEvent.stop(event);
        whole();
      });
      return bar;
    },
  });
  map.addControl(new Home());
  const Where = L.Control.extend({
    options: { position: "bottomright" },
    onAdd: () => L.DomUtil.create("div", "where"),
  });
  const where = new Where().addTo(map);
  map.on("mousemove", (event) => {
    const latitude = data.degrees[0] + (event.latlng.lat - data.at[1]) / DEGREE_M;
    const wide = DEGREE_M * Math.cos(data.middle * Math.PI / 180);
    const longitude = data.degrees[1] + (event.latlng.lng - data.at[0]) / wide;
    where.getContainer().textContent = `${latitude.toFixed(6)}, ${(((longitude + 540) % 360) - 180).toFixed(6)}`;
  });
  whole();
})();
