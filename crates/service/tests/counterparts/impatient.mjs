// The same people on a slow line, who press every button twice, without scripts. Nobody takes pictures.
process.env.IMPATIENT = "without scripts";
delete process.env.SCREENSHOTS;
await import("./browser.mjs");
