/** Settings for CSV files, which /imp and COPY read alike. */
import { int, size } from "../../config/mod.ts";

export const csvSettings = {
  linesMax: int(
    "http.text.analysis.max.lines",
    1000,
    "Number of lines of an imported file from which delimiter, header and types are detected.",
    { min: 2, max: 100_000, reloadable: true },
  ),
  lineSizeMax: size(
    "http.text.roll.buffer.limit",
    "4m",
    "Maximum length of a line of an imported file. A longer line ends the import, if it has 2m or more.",
    {
      min: 1024,
      reloadable: true,
    },
  ),
};
