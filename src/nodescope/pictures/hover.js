"use strict";
const said = document.getElementById("said");
document.querySelector("svg").addEventListener("mouseover", event => {
  const title = event.target.querySelector && event.target.querySelector(":scope > title");
  said.textContent = title && event.target.tagName === "rect" ? title.textContent : "";
});
