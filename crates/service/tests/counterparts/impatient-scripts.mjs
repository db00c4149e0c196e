// The same people on a slow line, who press every button twice, with scripts. Nobody takes pictures.
process.env.IMPATIENT = "with scripts";
delete process.env.SCREENSHOTS;
await import("./browser.mjs");
